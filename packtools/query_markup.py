"""One query as HTML: the candidates beside the packed text; what comes from a file is escaped here."""

from __future__ import annotations

import hashlib
import html
import math
from collections.abc import Iterable

from packtools.drilldown import Card, Part, QueryLook
from packtools.marking import Segment

__all__ = ["QUERY_CSS", "query_html"]

STATES = {"kept": "packed whole", "cut": "packed in part", "dropped": "not packed"}
QUERY_CSS = """<style>
.packtools .look{line-height:1.5;font-size:13px;color:var(--jp-ui-font-color1,#212121)}
.packtools .look p{margin:2px 0}
.packtools .look h4{margin:8px 0 4px;font-size:14px}
.packtools .look .quiet{color:var(--jp-ui-font-color2,#616161)}
.packtools .look .columns{display:flex;flex-wrap:wrap;gap:12px;align-items:flex-start}
.packtools .look .column{flex:1 1 340px;min-width:0;max-height:min(760px,85vh);overflow-y:auto;
 box-sizing:border-box;padding:0 4px 4px;border-top:1px solid var(--jp-border-color1,#bdbdbd)}
.packtools .look .column>h4{position:sticky;top:0;z-index:1;margin:0;padding:6px 0 4px;
 background:var(--jp-layout-color1,#fff)}
.packtools .look article,.packtools .look section.part{margin:0 0 8px;padding:5px 9px 6px;
 background:var(--jp-layout-color0,#fff);border:1px solid var(--jp-border-color2,#e0e0e0);
 border-left:5px solid #8a8a8a;scroll-margin-top:34px}
.packtools .look article.kept,.packtools .look section.part{border-left-color:#009e73}
.packtools .look article.cut,.packtools .look section.part.cut{border-left-color:#e69f00}
.packtools .look article.dropped{border-left-style:dashed}
.packtools .look :focus-visible{outline:2px solid var(--jp-brand-color1,#1976d2);outline-offset:-1px}
.packtools .look h5{display:inline;margin:0;font-size:13px;font-weight:600}
.packtools .look .state{display:inline-block;min-width:4.2em;margin-right:4px;padding:0 6px;text-align:center;
 font-size:12px;font-weight:600;border:1px solid currentColor;border-radius:9px}
.packtools .look .reason{font-weight:600}
.packtools .look .text{max-height:14.25em;overflow-y:auto;margin-top:4px;white-space:pre-wrap;
 overflow-wrap:anywhere;unicode-bidi:isolate}
.packtools .look section .text{max-height:24em}
.packtools .look del,.packtools .look .gone{color:var(--jp-ui-font-color2,#616161)}
.packtools .look mark{padding:0 1px;background:#ffe082;color:#000;border-radius:2px}
.packtools .look del mark{text-decoration:line-through}
.packtools .look u{text-decoration:underline double #d55e00;text-underline-offset:2px;font-weight:600}
.packtools .look mark u{text-decoration-color:#a33c00}
.packtools .look .gap{margin:-4px 0 4px 14px;font-family:var(--jp-code-font-family,monospace);font-size:11px}
.packtools .look a{color:var(--jp-content-link-color,#1565c0)}
</style>"""
_CONTROLS = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"}
_CONTROLS |= {0x7F: "\u2421"} | dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000)), "\ufffd")


def query_html(look: QueryLook) -> str:
    """Write one query as HTML: the candidates in retrieval order beside the packed text.

    1. Answers are marked, text that was cut away is struck through, and what differs from another
       candidate is underlined; a card says its state in a word, beside its colour.
    2. Cards and parts can be reached by the keyboard; a part links to the card it was cut from, and
       while one has the focus or the mouse both are outlined.
    3. Control characters are shown as symbols, lone surrogates as U+FFFD.

    Parameters
    ----------
    look : QueryLook

    Returns
    -------
    str
        To be shown below an element of the class "packtools", with `QUERY_CSS`. The same look gives
        the same text.
    """
    key = hashlib.blake2b(f"{look.qid}\0{look.config}".encode("utf-8", "replace"), digest_size=6).hexdigest()
    cards = "".join(_card(look, card, key) for card in look.cards)
    parts = "".join(_part(look, part, key) for part in look.parts) or "<p>Nothing is packed.</p>"
    return (
        f'<div class="look" id="look-{key}">{_head(look)}<div class="columns">'
        f'<div class="column" role="region" tabindex="0" aria-label="Candidates in retrieval order">'
        f"<h4>Candidates in retrieval order</h4>{cards}</div>"
        f'<div class="column" role="region" tabindex="0" aria-label="The packed text as it is sent">'
        f"<h4>The packed text as it is sent</h4>{parts}</div></div>{_pairs(look, key)}</div>"
    )


def _escaped(text: object) -> str:
    """Escape a text for HTML, and show what a browser would swallow or refuse."""
    plain = str(text).replace("\r\n", "\n").translate(_CONTROLS)
    return html.escape(plain)


def _isolated(text: str) -> str:
    return f'<bdi dir="auto">{_escaped(text)}</bdi>'


def _head(look: QueryLook) -> str:
    references = ", ".join(f"<mark>{_isolated(r)}</mark>" for r in look.references) or "none"
    prediction = "" if look.prediction is None else f"<p>Answer given: {_isolated(look.prediction)}</p>"
    legend = "<mark>an answer</mark> · <del>cut away</del> · <u>a number, date or negation that differs</u>"
    said = ". ".join(s[0].upper() + s[1:] for s in look.sentences)
    return (
        f"<h4>{_isolated(look.qid)}: {_isolated(look.query or 'no text')}</h4><p>{_escaped(said)}.</p>"
        f'<p>Reference answers: {references}</p>{prediction}<p class="quiet">{legend}</p>'
    )


def _card(look: QueryLook, card: Card, key: str) -> str:
    title = f" {_isolated(card.title)}" if card.title else ""
    reason = f'<p class="reason">{_isolated(card.reason)}</p>' if card.reason else ""
    notes = "".join(f"<p>{_isolated(note)}</p>" for note in card.notes)
    return (
        f'<article class="{card.state}" id="{key}-{card.rank}" data-rank="{card.rank}" tabindex="0" '
        f'aria-label="{_escaped(f"rank {card.rank}, {card.docid}, {card.state}")}">'
        f'<span class="state" title="{STATES[card.state]}">{card.state}</span>'
        f"<h5>{card.rank}. {_isolated(card.docid)}{title}</h5>"
        f'<p class="quiet">{" · ".join(_facts(look, card, key))}</p>{reason}{notes}'
        f"{_text(card.segments)}</article>"
    )


def _facts(look: QueryLook, card: Card, key: str) -> Iterable[str]:
    """Say size, score, judgement and place, as HTML."""
    if card.n_whole:
        yield f"{card.n_whole:,} {look.noun}"
    if card.score is not None and math.isfinite(card.score):
        yield f"score {card.score:,.4g}" if abs(card.score) < 1000 else f"score {card.score:,.0f}"
    if card.label is not None:
        yield f"{'relevant' if card.label > 0 else 'judged not relevant'} (label {card.label})"
    if card.has_answer:
        yield "holds an answer"
    if card.place is not None:
        place = f"{_nth(card.place)} of {look.n_places:,} in the prompt"
        yield f'<a href="#{key}-part-{card.rank}">{place}</a>'


def _nth(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"


def _text(segments: tuple[Segment, ...]) -> str:
    return f'<div class="text" dir="auto">{"".join(map(_segment, segments))}</div>' if segments else ""


def _segment(segment: Segment) -> str:
    text = _escaped(segment.text)
    if segment.differs:
        text = f'<u title="{_escaped(segment.differs)}">{text}</u>'
    if segment.answer:
        text = f"<mark>{text}</mark>"
    if segment.state == "kept":
        return text
    return f"<del>{text}</del>" if segment.state == "cut" else f'<span class="gone">{text}</span>'


def _part(look: QueryLook, part: Part, key: str) -> str:
    if part.rank is None:
        shown = _escaped(repr("".join(s.text for s in part.segments)))
        paid = "separator" if look.config.separator is not None else "joined here for reading, not charged"
        return f'<div class="gap quiet">{shown} {paid}</div>'
    card = look.cards[part.rank - 1]
    place = f"{_nth(card.place or 0)} of {look.n_places:,}"
    source = _escaped(f"{place}, from rank {card.rank}, {card.docid}")
    return (
        f'<section class="part {card.state}" id="{key}-part-{card.rank}" data-rank="{card.rank}" '
        f'tabindex="0" aria-label="{source}" title="{source}"><span class="quiet">{place}, from </span>'
        f'<a href="#{key}-{card.rank}">{card.rank}. {_isolated(card.docid)}</a>'
        f"{_text(part.segments)}</section>"
    )


def _pairs(look: QueryLook, key: str) -> str:
    """Write the rules that outline a card and its part together."""
    rules = "".join(
        f'#look-{key}:has([data-rank="{rank}"]:is(:hover,:focus-within)) [data-rank="{rank}"],'
        for rank in (part.rank for part in look.parts)
        if rank is not None
    )
    outline = "outline:2px solid var(--jp-brand-color1,#1976d2);outline-offset:-1px"
    return f"<style>{rules.rstrip(',')}{{{outline}}}</style>" if rules else ""
