"""The rival of character packing: one query at a time, in plain Python, as one would write it."""

from __future__ import annotations

import re
from collections.abc import Sequence

TOKEN = re.compile("[A-Za-z0-9]+")
BREAK = re.compile(r"(?<=[.!?])\s+")


def cut(text: str, limit: int) -> str:
    """Cut a text at a word boundary; its last word goes even if it fits exactly."""
    if len(text) <= limit:
        return text
    words = text[:limit].rstrip()
    return words[: words.rfind(" ")] if " " in words else words


def select(query: set[str], text: str, limit: int) -> str:
    """Take the sentences that overlap the query most, while they fit."""
    if len(text) <= limit:
        return text
    sentences = BREAK.split(text)
    overlap = [len(query & set(TOKEN.findall(s.lower()))) for s in sentences]
    taken: list[int] = []
    used = 0
    for i in sorted(range(len(sentences)), key=lambda i: -overlap[i]):
        size = len(sentences[i]) + (1 if taken else 0)
        if used + size <= limit:
            taken.append(i)
            used += size
        elif not taken:
            return cut(sentences[i], limit)
    return " ".join(sentences[i] for i in sorted(taken))


def pack(query: str, passages: Sequence[str], max_context_chars: int, max_passage_chars: int) -> list[str]:
    """Select, drop repeats, and fill until a passage does not fit; that one is cut."""
    asked = set(TOKEN.findall(query.lower()))
    seen: set[str] = set()
    selected = []
    for passage in passages:
        text = " ".join(passage.replace("\ufffd", " ").split())
        text = select(asked, text, max_passage_chars) if text else ""
        if text and text.lower() not in seen:
            seen.add(text.lower())
            selected.append(text)
    out: list[str] = []
    used = 0
    for text in selected:
        room = max_context_chars - used - (1 if out else 0)
        if len(text) > room:
            if room > 0:
                out.append(cut(text, room))
            break
        out.append(text)
        used += len(text) + (1 if len(out) > 1 else 0)
    return out


def pack_all(
    queries: Sequence[tuple[str, Sequence[str]]], max_context_chars: int, max_passage_chars: int
) -> list[list[str]]:
    """Pack every query in turn."""
    return [pack(query, passages, max_context_chars, max_passage_chars) for query, passages in queries]
