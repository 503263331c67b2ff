"""Judge an answer against its references: exact match, token F1, ROUGE-L and BLEU, by a named rule."""

from __future__ import annotations

import importlib
import re
import string
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from packtools.arrays import Floats
from packtools.errors import SettingError, fail, missing_extra, unknown
from packtools.matching import fold
from packtools.progress import progress
from packtools.text import NO_SPACES

__all__ = ["ANSWER_METRICS", "RULES", "Rule", "bleu", "exact_match", "rouge_l", "score_answers", "token_f1"]

T = TypeVar("T")
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_IGNORED = re.compile("[\u00ad\u034f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_SAME = str.maketrans("\u2212\u2013\u066b\u066c\u02bc\u02bb\u2019\u2018\u00b4`", "--.,''''''")
_PUNCTUATION = re.compile(
    r"(?P<joined>(?<=\d),(?=\d{3}(?!\d))|(?<=\w)['&](?=\w)|(?<=[^\W\d])\.(?=[^\W\d])|(?<=\de)\+(?=\d))"
    r"|(?P<kept>(?<=\d)[.,:/](?=\d)|(?<![\w)])-(?=\.?\d)|(?<=\de)-(?=\d))"
    r"|(?P<point>(?<![\w.])\.(?=\d))|[^\w ]|_"
)


def _msmarco_words(text: str) -> list[str]:
    """Lower case; articles go, then ASCII punctuation: "U.S.A." becomes "us"."""
    return _ARTICLE.sub(" ", text.lower()).translate(_NO_PUNCTUATION).split()


def _squad_words(text: str) -> list[str]:
    """Lower case; ASCII punctuation goes, then articles: "U.S.A." becomes "usa"."""
    return _ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def _unicode_words(text: str) -> list[str]:
    """Cut a text into words by the rule "unicode": see `RULES`."""
    text = _folded(text)
    words = _PUNCTUATION.sub(_in_place_of, text).split()
    kept = [w for w in words if not _ARTICLE.fullmatch(w)] or words
    return _spaced(" ".join(kept)).split() or [c for c in text if unicodedata.category(c)[0] == "S"]


def _rouge_words(text: str) -> list[str]:
    """Cut a text as rouge-score does, but let letters of every script and their accents stand."""
    text = _folded(text)
    plain = (c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text)
    return _spaced("".join(plain)).split()


def _folded(text: str) -> str:
    """Fold width, accents, case, digits, quotes and white space, and drop what has no width."""
    if not text.isascii():
        text = re.sub(r"\d", lambda m: str(unicodedata.decimal(m.group())), _IGNORED.sub("", text))
    text = fold(text.translate(_SAME).replace("\n", " "))
    return text if text.isascii() else unicodedata.normalize("NFC", text.casefold())


def _in_place_of(found: re.Match[str]) -> str:
    """Say what stands in the place of a character that is neither letter, digit nor space."""
    if found.lastgroup:
        return {"kept": found.group(), "point": "0.", "joined": ""}[found.lastgroup]
    stray = not found.start() or found.string[found.start() - 1] == " "
    return " " if stray or unicodedata.category(found.group())[0] != "M" else found.group()


def _spaced(text: str) -> str:
    """Put spaces around each character of a script that is written without them."""
    return text if text.isascii() else NO_SPACES.sub(r" \g<0> ", text)


@dataclass(frozen=True)
class Rule:
    """Say how answers are cut into words and how the edge cases count.

    Parameters
    ----------
    name : str
    words : callable, str to list of str
        The words that are compared; two answers match exactly when their lists are equal.
    source : str
        Where the rule comes from.
    whole : frozenset of str, default empty
        Answers that earn no F1 in part.
    careful : bool, default False
        Whether empty answers and missing references count as in "unicode".
    """

    name: str
    words: Callable[[str], list[str]]
    source: str
    whole: frozenset[str] = frozenset()
    careful: bool = False

    def wanted(self, references: Sequence[str]) -> list[list[str]]:
        """Give the words of each reference that counts."""
        every = [self.words(r) for r in references]
        return [words for words in every if words] or every if self.careful else every


_YES_NO = frozenset(("yes", "no", "noanswer"))
_RULES = (
    Rule("msmarco", _msmarco_words, "the recorded rule of the generation pipeline for MS MARCO answers"),
    Rule("squad", _squad_words, "evaluate-v1.1.py of SQuAD; Rajpurkar et al. 2016, sec. 6.1"),
    Rule("hotpotqa", _squad_words, "hotpot_evaluate_v1.py; Yang et al. 2018", _YES_NO),
    Rule("unicode", _unicode_words, "SQuAD's measures over words of Unicode (UAX 15, NFKC)", careful=True),
)
RULES: dict[str, Rule] = {rule.name: rule for rule in _RULES}
"""The rules by name.

"msmarco"
    `str.lower`; "a", "an", "the" become a space; ASCII punctuation is deleted; white space splits.
"squad"
    The same with punctuation first. The two differ for "U.S.A." and "plan-a".
"hotpotqa"
    As "squad", but "yes" and "no" earn F1 only when the whole answer is that word.
"unicode"
    1. NFKC (but "10²" stays apart from "102"), case folding ("ß" is "ss"), digits of every script
       as ASCII; characters without width go.
    2. Punctuation and symbols become a space, but are deleted inside a word for ``' & .``: "U.S.A."
       is "usa". Numbers stay whole, with sign, point and exponent: "(3.14)" is "3.14" and never
       "314"; ".5" is "0.5"; "1,000" is "1000". Percent and currency signs go.
    3. Articles go, unless the answer is nothing but articles: "A" is not "The".
    4. Each character of a script without spaces is a word of its own.
    5. A text without words is compared by its symbols ("+", "€", emoji); without those it is empty.
       An empty answer scores 1 against an empty reference, 0 against any other. An empty reference
       beside a usable one is left out with a warning. Without references the score is NaN.
"""


def exact_match(prediction: str, references: Iterable[str], *, rule: str = "msmarco") -> float:
    """Say whether an answer equals one of its references: 1.0 or 0.0.

    1. The answer and the references are cut into words by the rule: see `RULES`.
    2. 1.0 if the words equal those of any reference, in the same order.

    Parameters
    ----------
    prediction : str
    references : iterable of str
        A single text is an error: write ``[text]``.
    rule : {"msmarco", "squad", "hotpotqa", "unicode"}, default "msmarco"

    Returns
    -------
    float
        Without references 0.0, as recorded; NaN under "unicode".

    Raises
    ------
    SettingError
        If the rule is unknown, or the answer or a reference is no text.

    References
    ----------
    Rajpurkar et al. (2016), SQuAD: 100,000+ Questions for Machine Comprehension of Text, sec. 6.1.

    Examples
    --------
    >>> exact_match("The U.S.A.", ["USA"]), exact_match("The U.S.A.", ["USA"], rule="squad")
    (0.0, 1.0)
    >>> exact_match("(3.14)", ["3.14"], rule="unicode"), exact_match("314", ["3.14"], rule="unicode")
    (1.0, 0.0)
    """
    return _exact(*_checked("exact_match", prediction, references, rule))


def token_f1(prediction: str, references: Iterable[str], *, rule: str = "msmarco") -> float:
    """Give the F1 of the words of an answer and of its best reference, 0 to 1.

    1. The answer and the references are cut into words by the rule: see `RULES`.
    2. Precision is the share of the answer's words that the reference has, recall the reverse; a
       repeated word counts as often as both have it. The best F1 over the references is given.

    Parameters, returns and errors are those of `exact_match`.

    Notes
    -----
    Two answers without words have F1 0.0 though they match exactly; both are 1.0 under "unicode".

    References
    ----------
    Rajpurkar et al. (2016), SQuAD, sec. 6.1. Yang et al. (2018), HotpotQA, sec. 5.2.

    Examples
    --------
    >>> token_f1("yes it is", ["yes"]), token_f1("yes it is", ["yes"], rule="hotpotqa")
    (0.5, 0.0)
    >>> token_f1("東京", ["東京都"]), token_f1("東京", ["東京都"], rule="unicode")
    (0.0, 0.8)
    """
    return _f1(*_checked("token_f1", prediction, references, rule))


def _exact(rule: Rule, prediction: str, references: list[str]) -> float:
    found = rule.words(prediction)
    scores = [float(found == words) for words in rule.wanted(references)]
    return max(scores, default=np.nan if rule.careful else 0.0)


def _f1(rule: Rule, prediction: str, references: list[str]) -> float:
    found = rule.words(prediction)
    scores = [_overlap(rule, found, words) for words in rule.wanted(references)]
    return max(scores, default=np.nan if rule.careful else 0.0)


def _overlap(rule: Rule, found: list[str], wanted: list[str]) -> float:
    """Give the F1 of two lists of words; a word counts as often as it stands in both."""
    if not found and not wanted:
        return float(rule.careful)
    if found != wanted and not rule.whole.isdisjoint((" ".join(found), " ".join(wanted))):
        return 0.0
    common = (Counter(found) & Counter(wanted)).total()
    return 2 * common / (len(found) + len(wanted))


def rouge_l(prediction: str, references: Iterable[str]) -> float:
    """Give the ROUGE-L F-measure of an answer and its best reference, 0 to 1.

    1. Lower case; words are runs of letters and digits, without stemming. For ASCII text that is
       rouge-score's own rule; here letters of every script and their accents count too, and each
       character of a script without spaces is a word.
    2. F-measure (beta 1) of the longest common subsequence; the best over the references.

    Parameters and errors are those of `exact_match`; also `MissingExtra` without rouge-score.

    Notes
    -----
    NaN without references; 0.0 if either side has no words. Cost: the product of the two lengths.

    References
    ----------
    Lin (2004), ROUGE: A Package for Automatic Evaluation of Summaries, sec. 3.

    Examples
    --------
    >>> round(rouge_l("one three", ["one two three", "four"]), 3)
    0.8
    """
    text, known = _pair("rouge_l", prediction, references)
    library = _library("rouge_l", "rouge-score", "rouge_score", ".rouge_scorer")
    scorer = library.RougeScorer(["rougeL"], tokenizer=SimpleNamespace(tokenize=_rouge_words))
    return float(scorer.score_multi(known, text)["rougeL"].fmeasure) if known else np.nan


def bleu(prediction: str, references: Iterable[str]) -> float:
    """Give the sentence BLEU of an answer against all its references, 0 to 1.

    1. NFC; a space around each character of a script without spaces; then sacrebleu's "13a" words.
       Case counts.
    2. Clipped precision of 1 to 4 words, effective order (an answer of 2 words is judged by 1 and
       2), "exp" smoothing, brevity penalty to the reference nearest in length.

    Parameters and errors are those of `exact_match`; also `MissingExtra` without sacrebleu.

    Notes
    -----
    NaN without references; 0.0 without a common word. The signature of sacrebleu:
    ``nrefs:var|case:mixed|eff:yes|tok:13a|smooth:exp``, divided by 100.

    References
    ----------
    Papineni et al. (2002), BLEU. Post (2018), A Call for Clarity in Reporting BLEU Scores.

    Examples
    --------
    >>> round(bleu("this is a fest", ["this is a test"]), 4)
    0.5946
    """
    text, known = _pair("bleu", prediction, references)
    scorer = _library("bleu", "sacrebleu", "sacrebleu", ".metrics").BLEU(effective_order=True)
    text, *known = (_spaced(unicodedata.normalize("NFC", t)) for t in (text, *known))
    return min(float(scorer.sentence_score(text, known).score) / 100, 1.0) if known else np.nan


def _library(where: str, package: str, parent: str, module: str) -> Any:
    """Import an optional library at its first use, or say how to install it."""
    try:
        importlib.import_module(parent)
        return importlib.import_module(module, parent)
    except ImportError as error:
        missing_extra(where, package, "answers", error)


_SCORERS: dict[str, Callable[[Rule, str, list[str]], float]] = {
    "exact_match": _exact,
    "token_f1": _f1,
    "rouge_l": lambda rule, prediction, references: rouge_l(prediction, references),
    "bleu": lambda rule, prediction, references: bleu(prediction, references),
}
ANSWER_METRICS = tuple(_SCORERS)
"""The metrics of answers, by name; each is a function of this module."""


def score_answers(
    predictions: Sequence[str | None],
    references: Sequence[Sequence[str] | None],
    metrics: Sequence[str] = ("exact_match", "token_f1"),
    *,
    rule: str = "msmarco",
) -> dict[str, Floats]:
    """Score the answers of many queries: one array a metric.

    Parameters
    ----------
    predictions : sequence of str or None, length n_queries
        None (or NaN, as pandas writes it) is an answer that is missing; "" is one that is empty.
    references : sequence of sequences of str, length n_queries
        In the same order; None is none.
    metrics : sequence of str, default ("exact_match", "token_f1")
        Names of `ANSWER_METRICS`.
    rule : {"msmarco", "squad", "hotpotqa", "unicode"}, default "msmarco"
        Of exact match and F1; name it beside their numbers. ROUGE-L and BLEU have their own.

    Returns
    -------
    dict of str to ndarray of float64, shape (n_queries,)
        NaN ("not scored") where a query has no references or no answer, under every rule.

    Raises
    ------
    SettingError
        If a name is unknown, the lengths differ, or a value is no text; the place is named.

    Examples
    --------
    >>> score_answers(["Paris", "Rome", None], [["paris", "x"], [], ["Oslo"]], ["exact_match"])
    {'exact_match': array([ 1., nan, nan])}
    """
    where = "score_answers"
    chosen = _named(where, "rule", rule, RULES)
    scorers = {n: _named(where, "metric", n, _SCORERS) for n in _texts(where, "metrics", metrics)}
    given, known = _listed(where, "predictions", predictions), _listed(where, "references", references)
    if len(given) != len(known):
        fail(SettingError, where, "references", f"as long as 'predictions' ({len(given)})", len(known))
    texts = ["" if p is None else _text(where, f"predictions[{i}]", p) for i, p in enumerate(given)]
    wanted = [[] if r is None else _texts(where, f"references[{i}]", r) for i, r in enumerate(known)]
    out = {name: np.full(len(texts), np.nan) for name in scorers}
    judged = [i for i, text in enumerate(given) if text is not None and wanted[i]]
    for i in progress(judged, "score answers", len(judged)):
        for name, scorer in scorers.items():
            out[name][i] = scorer(chosen, texts[i], wanted[i])
    if {"exact_match", "token_f1"} & out.keys():
        _warn(where, chosen, [wanted[i] for i in judged])
    return out


def _checked(where: str, prediction: object, references: object, rule: str) -> tuple[Rule, str, list[str]]:
    chosen = _named(where, "rule", rule, RULES)
    text, known = _pair(where, prediction, references)
    _warn(where, chosen, [known], 4)
    return chosen, text, known


def _pair(where: str, prediction: object, references: object) -> tuple[str, list[str]]:
    return _text(where, "prediction", prediction), _texts(where, "references", references)


def _named(where: str, what: str, name: object, known: Mapping[str, T]) -> T:
    if not isinstance(name, str) or name not in known:
        unknown(SettingError, where, what, name, known)
    return known[name]


def _text(where: str, parameter: str, value: object) -> str:
    if not isinstance(value, str):
        fail(SettingError, where, parameter, "a text", value)
    return value


def _texts(where: str, parameter: str, values: object) -> list[str]:
    return [_text(where, f"{parameter}[{i}]", v) for i, v in enumerate(_listed(where, parameter, values))]


def _listed(where: str, parameter: str, values: object) -> list[Any]:
    """Take the entries of a list; NaN, as pandas writes what is missing, is None."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        fail(SettingError, where, parameter, "a list", values, "Put a single text into a list.")
    return [None if isinstance(v, float) and v != v else v for v in values]


def _warn(where: str, rule: Rule, judged: list[list[str]], stacklevel: int = 3) -> None:
    """Say how many references are left out."""
    if n := sum(len(r) - len(rule.wanted(r)) for r in judged) if rule.careful else 0:
        are = "1 reference has no words and is" if n == 1 else f"{n} references have no words and are"
        warnings.warn(f"{where}: {are} left out (rule {rule.name!r}).", stacklevel=stacklevel)
