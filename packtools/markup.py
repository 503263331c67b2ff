"""The panel's tables and picture as HTML; every text that comes from a file is escaped here."""

from __future__ import annotations

import base64
import html

from packtools import metrics
from packtools.explorer import View

__all__ = ["CSS", "delta_table", "image", "query_table"]

ROWS = 12
QUERY_WIDTH = 90
PICTURE = (759, 440)
CSS = """<style>
.packtools table{border-collapse:collapse;line-height:1.45;font-size:13px;font-variant-numeric:tabular-nums}
.packtools th{text-align:right;font-weight:600;padding:2px 9px;
 border-bottom:1px solid var(--jp-border-color1,#999)}
.packtools td{text-align:right;padding:2px 9px;white-space:nowrap}
.packtools td.wide{text-align:left;white-space:normal}
.packtools td.text,.packtools th.text{text-align:left}
.packtools tr.lost td{color:#c75000;font-weight:600}
.packtools .answer{width:348px;box-sizing:border-box;margin:6px 0;padding:9px 12px;
 border-left:4px solid #D55E00;background:var(--jp-layout-color2,#f4f4f4);line-height:1.5}
.packtools .answer b{font-size:15px}
.packtools .error{padding:9px 12px;border-left:4px solid #b00020;background:#fdecee;color:#7a0016}
.packtools .quiet{color:var(--jp-ui-font-color2,#666);font-size:12px}
.packtools img{background:#fff;max-width:100%;height:auto}
</style>"""


def image(png: bytes, alt: str) -> str:
    width, height = PICTURE
    source = base64.b64encode(png).decode()
    size = f'width="{width}" height="{height}"'
    return f'<img alt="{html.escape(alt)}" {size} src="data:image/png;base64,{source}">'


def _number(value: float, unit: str, signed: bool = False) -> str:
    """Write a value in its unit: percent for shares, points for their differences."""
    if value != value:
        return "n/a"
    scale, digits, tail = (
        (100, 1, "" if signed else " %") if unit == "share" else (1, 0 if abs(value) >= 100 else 1, "")
    )
    text = f"{value * scale:{'+' if signed else ''},.{digits}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("+-")
    return text.replace("-", "\N{MINUS SIGN}") + tail


def delta_table(view: View) -> str:
    """Show this setting against the baseline, metric by metric, and say what is not available."""
    table, baseline, missing = view.table, str(view.curve.index[0]), view.model.missing
    if view.noun == "characters":  # the same figures as n_chars
        table = table.drop(index="n_tokens")
    rows = []
    for name, row in table.iterrows():
        unit = row["unit"]
        label = metrics.METRICS[str(name)].words + (", points" if unit == "share" else "")
        interval = f"[{_number(row['ci_low'], unit, True)}, {_number(row['ci_high'], unit, True)}]"
        cells = [
            _number(row["baseline"], unit),
            _number(row["candidate"], unit),
            _number(row["delta"], unit, True),
            interval if row["n"] > 1 else "not testable",
            f"{row['n']:,} of {row['N']:,}",
        ]
        body = "".join(f"<td>{c}</td>" for c in cells)
        rows.append(f"<tr><td class='text'>{label}</td>{body}</tr>")
    heads = "".join(f"<th>{h}</th>" for h in (baseline, "here", "delta", "95 % interval", "n"))
    notes = "".join(f"<div class='quiet'>{html.escape(m)}</div>" for m in missing)
    return (
        "<h4 style='margin:8px 0 2px'>This setting against the baseline, means per query</h4>"
        f"<table><thead><tr><th class='text'>metric</th>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>{notes}"
    )


def query_table(view: View) -> str:
    """List the queries that lost most, with tokens and quality before and here."""
    name, frame = view.quality, view.per_query
    metric = metrics.METRICS[name]
    rows = []
    for qid, row in frame.head(ROWS).iterrows():
        before, here, delta = row[f"{name}_baseline"], row[name], row["delta"]
        cells = [
            f"{row['n_tokens_baseline']:,.0f}",
            f"{row['n_tokens']:,.0f}",
            *_change(metric, before, here, delta),
        ]
        worse = delta < 0 if metric.higher_is_better else delta > 0
        mark = " class='lost'" if worse else ""
        body = "".join(f"<td>{c}</td>" for c in cells)
        text = str(row["query"])
        text = html.escape(text if len(text) <= QUERY_WIDTH else text[: QUERY_WIDTH - 1] + "…")
        rows.append(
            f"<tr{mark}><td class='text'>{html.escape(str(qid))}</td><td class='wide'>{text}</td>{body}</tr>"
        )
    heads = "".join(
        f"<th>{h}</th>" for h in (f"{view.noun} before", "here", f"{metric.words} before", "here", "change")
    )
    shown = min(ROWS, len(frame))
    return (
        f"<h4 style='margin:12px 0 2px'>Queries, the largest loss first ({shown:,} of {len(frame):,})</h4>"
        f"<table><thead><tr><th class='text'>id</th><th class='text'>query</th>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _change(metric: metrics.Metric, before: float, here: float, delta: float) -> list[str]:
    """Write the quality of one query; yes and no where it can only be that."""
    if metric.name == "answer_retention":
        words = {1.0: "yes", 0.0: "no"}
        change = "lost" if delta < 0 else "gained" if delta > 0 else ""
        return [words.get(before, "not scored"), words.get(here, "not scored"), change]
    return [_number(before, metric.unit), _number(here, metric.unit), _number(delta, metric.unit, True)]
