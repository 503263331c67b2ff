"""Find an answer in a context: one way of folding, whole words, whole numbers, exact offsets."""

from __future__ import annotations

import re
import unicodedata

from packtools.text import NO_SPACES, OTHER_NUMBER

WINDOW = 16
"""Characters beyond the bisected place that are looked at: a hyphen break steps back by one."""
__all__ = ["find_folded", "fold", "has_hyphen_break", "source_offset"]

_HYPHEN_BREAK = re.compile(r"(?<=[^\W\d_])([-\u2010])[ \t]*\n[ \t]*(?=[^\W\d_])")
_ANY_BREAK = re.compile(r"(?<=\w)([-\u2010])[ \t]*\n[ \t]*(?=\w)")
_KEPT_NUMBER = re.compile(f"([{OTHER_NUMBER}])")


def fold(text: str, keep_hyphens: bool = False) -> str:
    """Fold a text for answer matching.

    NFKC (but "10²" stays apart from "102"), lower case, runs of white space to one space, and
    words broken by a hyphen at the end of a line joined again: "infor-⏎mation" is "information",
    or with `keep_hyphens` "Coca-⏎Cola" is "coca-cola".
    """
    if "\n" in text:
        text = _ANY_BREAK.sub(r"\1", text) if keep_hyphens else _HYPHEN_BREAK.sub("", text)
    if not text.isascii():
        text = text.replace("\u00ad", "")
        parts = _KEPT_NUMBER.split(text)
        text = "".join(unicodedata.normalize("NFKC", p) if i % 2 == 0 else p for i, p in enumerate(parts))
    return " ".join(text.lower().split())


def has_hyphen_break(text: str) -> bool:
    """Whether the two ways of `fold` may differ."""
    return "\n" in text and _ANY_BREAK.search(text) is not None


def _joins(left: str, right: str) -> bool:
    """Whether two neighbouring characters are inside one word or one number."""
    if NO_SPACES.match(left) or NO_SPACES.match(right):
        return left.isdigit() and right.isdigit()
    return _in_word(left) and _in_word(right)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"


def find_folded(needle: str, haystack: str) -> int:
    """Find a folded answer in a folded text as whole words and whole numbers; -1 if absent.

    "no" is not in "nobody", "5" is not in "15" or "5.2" or "1,500"; scripts without spaces match
    anywhere. Cost: one substring search for most misses.
    """
    if not needle:
        return -1
    at = haystack.find(needle)
    while at >= 0:
        if _stands_alone(needle, haystack, at):
            return at
        at = haystack.find(needle, at + 1)
    return -1


def _stands_alone(needle: str, haystack: str, at: int) -> bool:
    end = at + len(needle)
    before, after = haystack[at - 1 : at], haystack[end : end + 1]
    if (before and _joins(before, needle[0])) or (after and _joins(needle[-1], after)):
        return False
    if needle[0] in ".," and needle[1:2].isdigit() and before.isdigit():  # ".5" in "10.5"
        return False
    if needle[0].isdigit() and before in (".", ",") and before:
        further = haystack[at - 2 : at - 1] if at > 1 else ""
        if further.isdigit() or (
            before == "." and not _in_word(further or " ") and further not in (".", ")")
        ):
            return False
    return not (
        needle[-1].isdigit() and after in (".", ",") and after and haystack[end + 1 : end + 2].isdigit()
    )


def source_offset(text: str, folded_at: int, keep_hyphens: bool = False) -> int:
    """Give where in `text` the character stands that its fold has at `folded_at`.

    The fold of what stands before a character, with a letter put in its place, tells where the
    character comes to stand; of the places that come to stand there the last holds it, since the
    others are white space, marks or hyphens that the fold takes away.
    """

    def place(at: int) -> int:
        return len(fold(text[:at] + "x", keep_hyphens)) - 1

    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if place(middle) > folded_at:
            high = middle
        else:
            low = middle + 1
    for at in range(min(low + WINDOW, len(text) - 1), -1, -1):
        if place(at) <= folded_at:
            return at
    return 0
