"""Join the pieces of a sweep into its result; of one that ended early, the largest block that is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from packtools import metrics
from packtools.arrays import Floats
from packtools.config import PackerConfig
from packtools.errors import RunFormatError
from packtools.grids import setting_id
from packtools.pieces import Piece
from packtools.swept import SweepResult

Rows = dict[str, dict[str, tuple[Piece, int]]]


def put_together(
    name: str,
    counter: str,
    baseline: PackerConfig,
    configs: Sequence[PackerConfig],
    sources: Sequence[str],
    found: Sequence[Piece],
    rng: int,
) -> SweepResult:
    """Join pieces to the result of a sweep.

    Parameters
    ----------
    name, counter, baseline, configs, rng
        As in `SweepResult`, `configs` being all that was asked for.
    sources : sequence of str
        In the order of the run.
    found : sequence of Piece

    Raises
    ------
    KeyboardInterrupt
        If nothing whole was finished.
    RunFormatError
        If two sources hold the same query.
    """
    rows: Rows = {source: {} for source in sources}
    for piece in found:
        if piece.source in rows:
            rows[piece.source].update({i: (piece, place) for place, i in enumerate(piece.ids)})
    whole, chosen, missing = _whole(rows, baseline, configs)
    ids = [setting_id(baseline), *map(setting_id, chosen)]
    blocks = [[rows[source][i] for i in ids] for source in whole]
    qids = tuple(q for block in blocks for q in block[0][0].qids)
    _check_once(qids)
    given = dict.fromkeys(metric for block in blocks for metric in block[0][0].values)
    values = {m: np.concatenate([_block(block, m) for block in blocks], axis=1) for m in given}
    lacking = {m: why for block in blocks for m, why in block[0][0].unavailable.items() if m not in given}
    known = metrics.METRICS | metrics.DERIVED
    return SweepResult(name, counter, baseline, tuple(chosen), qids, values, lacking, known, missing, rng)


def _whole(
    rows: Rows, baseline: PackerConfig, configs: Sequence[PackerConfig]
) -> tuple[list[str], list[PackerConfig], str]:
    """Choose the sources and settings that are whole, and say what is missing.

    One source is cut by its settings, several by source.
    """
    wanted = {setting_id(baseline), *map(setting_id, configs)}
    whole = [source for source, done in rows.items() if wanted <= done.keys()]
    if len(whole) == len(rows):
        return whole, list(configs), ""
    if len(rows) > 1 and whole:
        return whole, list(configs), f"ended early: the queries of {len(whole):,} of {len(rows):,} parts"
    (source, done), *others = rows.items()
    chosen = [c for c in configs if setting_id(c) in done]
    if others or not chosen or setting_id(baseline) not in done:
        raise KeyboardInterrupt
    return [source], chosen, f"ended early: {len(chosen):,} of {len(configs):,} settings"


def _check_once(qids: Sequence[str]) -> None:
    twice = [qid for qid, n in Counter(qids).items() if n > 1]
    if twice:
        raise RunFormatError(
            f"sweep: query {twice[0]!r} is in more than one part of the run; a query must be in one. "
            "Write the parts again with `packtools partition`."
        )


def _block(block: Sequence[tuple[Piece, int]], metric: str) -> Floats:
    """Stack one metric of one source; "not scored" where the source lacks it."""
    nothing = np.full(len(block[0][0].qids), np.nan)
    return np.stack([piece.values[metric][at] if metric in piece.values else nothing for piece, at in block])
