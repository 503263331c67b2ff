"""A grid of settings: which packs a sweep tries, and by what id each is known."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from packtools.config import PackerConfig
from packtools.errors import SettingError, fail, unknown

__all__ = ["expand", "setting_id", "varied"]

FIELDS = tuple(f.name for f in fields(PackerConfig))
DEFAULT = PackerConfig()
HEX = 12


def expand(base: PackerConfig, grid: Mapping[str, object]) -> list[PackerConfig]:
    """List every combination of a grid; settings that come out equal are listed once.

    Parameters
    ----------
    base : PackerConfig
        Whatever the grid does not set.
    grid : mapping of setting to value or list of values
        Anything iterable but a text is a list of values.

    Raises
    ------
    SettingError
        If a name is no setting, or a list is empty.
    PackerError
        If a combination breaks a rule.

    Notes
    -----
    Budgets vary fastest: they are one axis of the fit.

    Examples
    --------
    >>> [c.budget for c in expand(PackerConfig(), {"budget": [500, 1000], "order": "fill"})]
    [500, 1000]
    """
    for name in grid:
        if name not in FIELDS:
            unknown(SettingError, "sweep", "setting", name, FIELDS)
    names = sorted(grid, key=lambda name: name == "budget")
    axes = [_values(name, grid[name]) for name in names]
    made = (base.replace(**dict(zip(names, one, strict=True))) for one in itertools.product(*axes))
    return list(dict.fromkeys(made))


def _values(name: str, given: object) -> list[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable) or getattr(given, "shape", 1) == ():
        return [given.item() if hasattr(given, "item") else given]
    values = [v.item() if hasattr(v, "item") else v for v in given]
    if not values:
        fail(SettingError, "sweep", name, "a value or a list of at least one", given)
    return values


def setting_id(config: PackerConfig) -> str:
    """Give the id of a setting: the same in every grid, session and machine.

    It is made of what differs from the defaults, so that a new setting leaves old ids as they are;
    it starts with a letter, so that no spreadsheet takes it for a number.

    Examples
    --------
    >>> setting_id(PackerConfig(budget=500)) == setting_id(PackerConfig(unit="tokens", budget=500))
    True
    """
    told = {n: getattr(config, n) for n in FIELDS if getattr(config, n) != getattr(DEFAULT, n)}
    text = json.dumps(told, sort_keys=True, ensure_ascii=True)
    return "s" + hashlib.sha256(text.encode("ascii")).hexdigest()[:HEX]


def varied(configs: Sequence[PackerConfig]) -> list[str]:
    """Name the settings in which some of the configs differ, in the order of the fields."""
    return [n for n in FIELDS if len({getattr(c, n) for c in configs}) > 1]


def ladders(configs: Sequence[PackerConfig]) -> list[list[PackerConfig]]:
    """Group settings that differ in the budget alone."""
    groups: dict[PackerConfig, list[PackerConfig]] = {}
    for config in configs:
        groups.setdefault(config.replace(budget=None), []).append(config)
    return list(groups.values())
