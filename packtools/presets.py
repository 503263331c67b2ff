"""Settings with a name: the published packers, and where an analysis may start."""

from __future__ import annotations

from collections.abc import Callable

from packtools.config import PackerConfig
from packtools.errors import SettingError, unknown
from packtools.tradeoff import SHOWN, unpacked

__all__ = ["PRESETS", "preset"]

THRESHOLD = 0.85
"""Of near-duplicates, where a run was prepared from it or below."""
Preset = Callable[[int, float], PackerConfig]

START = "start of the panel"
PRESETS: dict[str, Preset] = {
    START: lambda budget, threshold: SHOWN.replace(budget=budget, jaccard_threshold=threshold),
    "everything, as retrieved": lambda budget, threshold: unpacked(SHOWN),
    "near-duplicates only": lambda budget, threshold: SHOWN.replace(jaccard_threshold=threshold),
    "token packer, as published": lambda budget, threshold: PackerConfig(budget=budget),
    "character packer, 900 / 320": lambda budget, threshold: PackerConfig.characters(900, 320),
    "sentences by query overlap": lambda budget, threshold: SHOWN.replace(
        budget=budget, passage_budget=max(budget // 10, 1), sentence_selection="query_overlap"
    ),
}
"""Each takes a budget in tokens and a threshold of near-duplicates; not all use them."""


def preset(name: str, *, budget: int, min_jaccard: float = 0.0) -> PackerConfig:
    """Give the settings of a preset.

    Parameters
    ----------
    name : str
        A key of `PRESETS`.
    budget : int
        In tokens; the character packer has its own, as in the published runs of MS MARCO.
    min_jaccard : float, default 0
        From where near-duplicates are known: ``prepared.min_jaccard``.

    Raises
    ------
    SettingError
        If the name is unknown.
    PackerError
        If the budget is not a whole number of at least 1, where the preset uses it.

    Notes
    -----
    The panel starts with chunks a blank line apart, so that what it shows is what is paid. Dropping
    near-duplicates alone loses no answer of the sample run: see the notebook on near-duplicates.

    References
    ----------
    The two published packers are given by the defaults of `PackerConfig` and by
    `PackerConfig.characters`; "everything, as retrieved" is `unpacked`.

    Examples
    --------
    >>> preset("token packer, as published", budget=4000)
    PackerConfig(budget=4000)
    """
    if name not in PRESETS:
        unknown(SettingError, "preset", "name", name, PRESETS)
    return PRESETS[name](budget, max(THRESHOLD, min_jaccard))
