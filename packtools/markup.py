"""The panel's tables and picture as HTML; every text that comes from a file is escaped here."""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass
from typing import Any

from packtools import metrics
from packtools.table_words import delta_cells
from packtools.view import View
from packtools.words import amount, points

__all__ = ["CSS", "Snapshot", "delta_table", "image", "pin_table"]

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
.packtools .busy{animation:packtools-busy 0s linear .2s both}
@keyframes packtools-busy{from{visibility:hidden}to{visibility:visible}}
.packtools .quiet a{color:var(--jp-content-link-color,#0645ad)}
.packtools .quiet ul{line-height:1.4;padding-left:18px}
.packtools img{background:#fff;max-width:100%;height:auto}
</style>"""


@dataclass(frozen=True)
class Snapshot:
    """Hold what a panel showed, for a notebook that is opened without its kernel.

    Parameters
    ----------
    png : bytes
    markup : str
        The tables as HTML.
    lines : list of str
        The answer in words.
    """

    png: bytes
    markup: str
    lines: list[str]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        said = "".join(f"<div>{html.escape(line)}</div>" for line in self.lines)
        picture = image(self.png, self.lines[0])
        return {
            "text/html": f'{CSS}<div class="packtools">{said}{picture}{self.markup}</div>',
            "image/png": base64.b64encode(self.png).decode(),
            "text/plain": "\n".join(self.lines),
        }


def image(png: bytes, alt: str) -> str:
    width, height = PICTURE
    source = base64.b64encode(png).decode()
    size = f'width="{width}" height="{height}"'
    return f'<img alt="{html.escape(alt)}" {size} src="data:image/png;base64,{source}">'


def delta_table(view: View) -> str:
    """Show this setting against the baseline, metric by metric, and say what is not available."""
    heads, rows = delta_cells(view.table, view.against, view.noun)
    head = "".join(f"<th>{html.escape(h)}</th>" for h in heads[1:])
    body = "".join(
        f"<tr><td class='text'>{label}</td>{''.join(f'<td>{c}</td>' for c in cells)}</tr>"
        for label, *cells in rows
    )
    notes = "".join(f"<div class='quiet'>{html.escape(m)}</div>" for m in view.missing)
    return (
        "<h4 style='margin:8px 0 2px'>This setting against the baseline, means per query</h4>"
        f"<table><thead><tr><th class='text'>{heads[0]}</th>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{notes}"
    )


def pin_table(view: View) -> str:
    """Show the pinned settings against the baseline; "" where none is pinned."""
    if view.pins.empty:
        return ""
    metric = metrics.METRICS[view.quality]
    rows = []
    for name, row in view.pins.iterrows():
        interval = f"[{points(metric, row['ci_low'])}, {points(metric, row['ci_high'])}]"
        cells = [
            f"{row['n_tokens']:,.0f}",
            amount(metric, row["quality"]),
            points(metric, row["delta"]),
            interval if row["n"] > 1 else "not testable",
            f"{row['n']:,}",
        ]
        body = "".join(f"<td>{c}</td>" for c in cells)
        words = html.escape(row["words"])
        rows.append(f"<tr><td class='text'><b>{name}</b></td><td class='wide'>{words}</td>{body}</tr>")
    delta = "points" if metric.unit == "share" else "delta"
    heads = "".join(f"<th>{h}</th>" for h in (view.noun, metric.words, delta, "95 % interval", "n"))
    return (
        f"<h4 style='margin:12px 0 2px'>Pinned settings, against {html.escape(view.against)}</h4>"
        f"<table><thead><tr><th class='text'>pin</th><th class='text'>setting</th>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
