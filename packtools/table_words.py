"""The delta table as texts: the same cells on the screen, in Markdown and in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from packtools.metrics import METRICS

__all__ = ["delta_cells", "latex_table", "latex_text", "markdown_table", "markdown_text", "number"]

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": "$<$",
    ">": "$>$",
    "\N{MINUS SIGN}": "$-$",
    "\N{MIDDLE DOT}": r"$\cdot$",
    **{c: f"\\{c}" for c in "&%_#${}"},
}
HEADS = ("here", "delta", "95 % interval", "n")


def number(value: float, unit: str, signed: bool = False) -> str:
    """Write a value in its unit: percent for shares, points for their differences.

    Parameters
    ----------
    value : float
        NaN is "n/a".
    unit : str
        As in `Metric`.
    signed : bool, default False
        Whether it is a difference.

    Returns
    -------
    str

    Examples
    --------
    >>> number(0.986, "share"), number(1012.3, "tokens"), number(0.004, "share", signed=True)
    ('98.6 %', '1,012', '+0.4')
    """
    if value != value:
        return "n/a"
    scale, digits, tail = (
        (100, 1, "" if signed else " %") if unit == "share" else (1, 0 if abs(value) >= 100 else 1, "")
    )
    text = f"{value * scale:{'+' if signed else ''},.{digits}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("+-")
    return text.replace("-", "\N{MINUS SIGN}") + tail


def delta_cells(table: pd.DataFrame, against: str, noun: str = "tokens") -> tuple[list[str], list[list[str]]]:
    """Write a delta table as the cells that are read.

    Parameters
    ----------
    table : DataFrame, index metric
        As `tradeoff.delta_table` gives it.
    against : str
        What the baseline is called.
    noun : {"tokens", "characters"}, default "tokens"
        What the counter counts; for characters the line of tokens, the same figures, is left out.

    Returns
    -------
    heads : list of str
    rows : list of list of str
        One a metric: its words, baseline, here, delta, interval, "n of N".
    """
    if noun == "characters":
        table = table.drop(index="n_tokens", errors="ignore")
    rows = []
    for name, row in table.iterrows():
        unit = row["unit"]
        low, high = (number(row[side], unit, signed=True) for side in ("ci_low", "ci_high"))
        rows.append(
            [
                METRICS[str(name)].words + (", points" if unit == "share" else ""),
                number(row["baseline"], unit),
                number(row["candidate"], unit),
                number(row["delta"], unit, signed=True),
                f"[{low}, {high}]" if row["n"] > 1 else "not testable",
                f"{row['n']:,} of {row['N']:,}",
            ]
        )
    return ["metric", against, *HEADS], rows


def markdown_text(text: str) -> str:
    r"""Write a text so that GitHub shows it as it is, in one cell or line.

    Examples
    --------
    >>> print(markdown_text("a|b_c <i>"))
    a\|b\_c \<i>
    """
    return re.sub(r"[\\`*_|<&~$]|(?<=\])\(", r"\\\g<0>", " ".join(text.split()))


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write cells as a Markdown table, the first column to the left, the others to the right."""
    lines = [[*map(markdown_text, line)] for line in (heads, *rows)]
    lines.insert(1, [":--", *["--:"] * (len(heads) - 1)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex_text(text: str) -> str:
    r"""Write a text so that LaTeX prints it as it is, in one cell or line.

    Examples
    --------
    >>> print(latex_text("50 % of run_2"))
    50 \% of run\_2
    """
    line = "".join(LATEX.get(c, c) for c in " ".join(text.split()))
    return re.sub("-(?=-)", "-{}", line)  # two hyphens print as one dash


def latex_table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Write cells as a LaTeX table that needs no package, with its caption."""
    head, *body = (" & ".join(map(latex_text, line)) + r" \\" for line in (heads, *rows))
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\hline",
        head,
        r"\hline",
        *body,
        r"\hline",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"
