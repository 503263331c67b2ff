"""Published prices of models, from the dated data that genai-prices brings with it; no network."""

from __future__ import annotations

import difflib
from contextlib import suppress
from datetime import UTC, date, datetime, time
from functools import cache
from typing import TYPE_CHECKING, Any

from packtools.errors import SettingError, fail, missing_extra, shown, unknown
from packtools.money import Price

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, ModelPrice, Provider

__all__ = ["price_of"]

PRICED = {
    "input": "input_mtok",
    "cached_input": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "output": "output_mtok",
}
"""Classes of tokens, and what genai-prices calls their rates."""
OWN = "Give your own Price(name, input=…)."


def price_of(model: str, *, provider: str | None = None, date: date | str | None = None) -> Price:
    """Look up the published price of a model in the data that genai-prices brings with it.

    1. The price that held on `date` is given; without one, today's. Name the date where a table must
       come out the same next year.
    2. It is the standard price: no batch, priority or fast-mode rates; cache writes at the rate of the
       shortest-lived cache.

    Parameters
    ----------
    model : str
        Name as in the provider's interface ("gpt-4o", "claude-sonnet-4-5"), or the id in the data.
    provider : str or None, default None
        Name as in genai-prices: "openai", "azure", "openrouter". None is the one
        to whose names the model's name fits, as a rule its maker.
    date : datetime.date, datetime.datetime, ISO text or None, default None
        With a time of day (UTC if it names no zone) where the price depends on it.

    Returns
    -------
    Price
        Its `name` is provider/model, `date` the first day on which it holds (None where the data name
        none), `source` the release of genai-prices and the day that was asked for.

    Raises
    ------
    SettingError
        If model, provider or date is unknown; if the price depends on the time of day and `date` has
        none; if the data hold no price per token, or a price per request besides.
    MissingExtra
        If genai-prices is not installed.

    Notes
    -----
    About half a second for the first call of a session, which reads the data. Nothing is downloaded;
    newer prices come with a newer genai-prices. Prices of images, sound and searches are left out.

    Examples
    --------
    >>> price_of("o3", date="2025-06-09").input, price_of("o3", date="2025-06-10").input
    (10.0, 2.0)
    """
    if not isinstance(model, str) or not model.strip():
        fail(SettingError, "price_of", "model", "a model's name", model)
    if provider is not None and not isinstance(provider, str):
        fail(SettingError, "price_of", "provider", "a provider's name or None", provider)
    when = _parsed(date)
    snapshot, release = _bundled()
    seller, found = _find(snapshot, release, model.strip(), provider)
    name = f"{seller.id}/{found.id}"
    if not isinstance(when, datetime):
        _check_any_hour(found, name, when)
    prices = found.get_prices(_utc(when))
    return Price(
        name,
        **_rates(prices, name, release),
        date=_valid_from(found, prices),
        source=f"genai-prices {release}, price of {_words(when)}",
    )


@cache
def _bundled() -> tuple[DataSnapshot, str]:
    """Give the prices inside the package, whatever an updater elsewhere has put in their place."""
    try:
        import genai_prices
        from genai_prices.data import providers
        from genai_prices.data_snapshot import DataSnapshot
    except ImportError as error:
        missing_extra("price_of", "genai-prices", "prices", error)
    return DataSnapshot(providers, from_auto_update=False), genai_prices.__version__


def _parsed(given: object) -> date:
    """Read a day, or a moment if it has a time; None is today."""
    if given is None:
        return datetime.now(UTC).date()
    if isinstance(given, str):
        for kind in (date, datetime):
            with suppress(ValueError):
                return kind.fromisoformat(given.strip())
    if not isinstance(given, date):
        fail(SettingError, "price_of", "date", "a date, as in '2025-06-10'", given)
    return given


def _utc(when: date) -> datetime:
    if not isinstance(when, datetime):
        return datetime.combine(when, time(), UTC)
    return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)


def _words(when: date) -> str:
    return f"{_utc(when):%Y-%m-%d %H:%M} UTC" if isinstance(when, datetime) else when.isoformat()


def _check_any_hour(model: ModelInfo, name: str, day: date) -> None:
    """Refuse a bare day where the hour decides."""
    from genai_prices.types import TimeOfDateConstraint

    dated = model.prices if isinstance(model.prices, list) else []
    limits = [c.constraint for c in dated if isinstance(c.constraint, TimeOfDateConstraint)]
    if limits:
        hours = ", ".join(f"{c.start_time:%H:%M} to {c.end_time:%H:%M} UTC" for c in limits)
        raise SettingError(
            f"price_of: the price of {name!r} depends on the time of day ({hours}); got {day}, which has "
            f"none. Give a time too, as in date='{day}T12:00'."
        )


def _valid_from(model: ModelInfo, prices: ModelPrice) -> str | None:
    """Name the first day of a price, if the data have one."""
    for dated in model.prices if isinstance(model.prices, list) else []:
        if dated.prices is prices:
            start = getattr(dated.constraint, "start_date", None)
            return start.isoformat() if start else None
    return None


def _rates(prices: ModelPrice, name: str, release: str) -> dict[str, Any]:
    """Read the rates of text tokens; refuse what they are not the whole price of."""
    from genai_prices.types import TieredPrices

    held = {key: value for key, value in vars(prices).items() if value is not None}
    if "input_mtok" not in held:
        listed = ", ".join(sorted(held)) or "nothing"
        raise SettingError(
            f"price_of: genai-prices {release} has no price of input tokens for {name!r} (it has: {listed}), "
            f"so its cost is unknown, not 0. {OWN}"
        )
    if "requests_kcount" in held:
        raise SettingError(
            f"price_of: {name!r} charges {held['requests_kcount']} USD per 1,000 requests besides its "
            f"tokens, which a Price can't hold. {OWN} Add the fee to its costs."
        )
    rates: dict[str, Any] = {}
    for kind, key in PRICED.items():
        rate = held.get(key)
        if isinstance(rate, TieredPrices):
            rates[kind] = [(0, float(rate.base)), *((tier.start, float(tier.price)) for tier in rate.tiers)]
        else:
            rates[kind] = None if rate is None else float(rate)
    return rates


def _find(
    snapshot: DataSnapshot, release: str, model: str, provider: str | None
) -> tuple[Provider, ModelInfo]:
    """Find a model by the rules of the data, or by its id there; refuse what has neither."""
    from genai_prices.data_snapshot import find_provider_by_id

    try:
        return snapshot.find_provider_model(model, None, provider, None)
    except LookupError:
        pass
    sellers = snapshot.providers
    if provider is not None:
        seller = find_provider_by_id(sellers, provider)
        if seller is None:
            unknown(SettingError, "price_of", "provider", provider, (each.id for each in sellers))
        for known in seller.models:
            if known.id.lower() == model.lower():
                return seller, known
        sellers = [seller]
    whose = "no provider was named" if provider is None else f"provider {shown(provider)}"
    near = _near(model, sellers)
    raise SettingError(
        f"price_of: model {shown(model)} ({whose}) is unknown to genai-prices {release}. "
        + (f"Near: {near}." if near else OWN)
    )


def _near(model: str, sellers: list[Provider]) -> str:
    """List the models with the nearest names, and who sells them."""
    sold_by: dict[str, list[str]] = {}
    for seller in sellers:
        for known in seller.models:
            sold_by.setdefault(known.id, []).append(seller.id)
    names = difflib.get_close_matches(model.lower(), sold_by, n=5)
    return "; ".join(f"{name!r} of {', '.join(sold_by[name][:3])}" for name in names)
