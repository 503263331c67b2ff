"""Published prices against genai-prices' own calculation, and what has none; no network."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime

import genai_prices
import numpy as np
import pytest
from genai_prices.data import providers
from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot

from packtools.errors import MissingExtra, SettingError
from packtools.prices import price_of


def dollars(price, **counts):
    return float(price.cost(**counts))


def oracle(model, provider, moment, n_tokens, cached=0, cache_write=0, output=0):
    """Give what genai-prices itself makes of a request."""
    usage = genai_prices.Usage(
        input_tokens=n_tokens, cache_read_tokens=cached, cache_write_tokens=cache_write, output_tokens=output
    )
    priced = genai_prices.calc_price(usage, model, provider_id=provider, genai_request_timestamp=moment)
    return float(priced.total_price)


NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
COUNTS = [
    {"n_tokens": 1_000, "output": 200},
    {"n_tokens": 620, "cached": 500, "output": 50},
    {"n_tokens": 0, "output": 7},
    *({"n_tokens": n, "cached": 50_000, "output": 999} for n in (199_999, 200_000, 200_001, 1_000_000)),
]


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("gpt-4o", "openai"),
        ("gpt-4o", "azure"),
        ("claude-sonnet-4-5", "anthropic"),  # steps at 200,000
        ("gemini-2.5-pro", "google"),  # steps at 200,000
        ("grok-4.20", "x-ai"),  # counts from 200,000 on: its step is 199,999
        ("claude-haiku-4-5", "anthropic"),
    ],
)
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_cost_equals_that_of_genai_prices(model, provider, counts):
    price = price_of(model, provider=provider, date=NOON.date())
    assert dollars(price, **counts) == pytest.approx(oracle(model, provider, NOON, **counts), rel=1e-12)


@pytest.mark.parametrize("n_tokens", [200_000, 200_001])
def test_cache_writes_equal_those_of_genai_prices_on_both_sides_of_the_step(n_tokens):
    counts = {"n_tokens": n_tokens, "cached": 150_000, "cache_write": 49_000, "output": 321}
    price = price_of("claude-sonnet-4-5", date=NOON.date())
    expected = oracle("claude-sonnet-4-5", "anthropic", NOON, **counts)
    assert dollars(price, **counts) == pytest.approx(expected, rel=1e-12)


def test_the_date_chooses_the_price():
    # OpenAI cut o3 by 80 % on 10 June 2025, from 10 and 40 USD to 2 and 8.
    before, after = price_of("o3", date="2025-06-09"), price_of("o3", date=date(2025, 6, 10))
    assert (before.input, before.output, before.date) == (10, 40, None)
    assert (after.input, after.output, after.date) == (2, 8, "2025-06-10")
    counts = {"n_tokens": 5_000, "cached": 1_000, "output": 700}
    for price, day in ((before, 9), (after, 10)):
        expected = oracle("o3", "openai", datetime(2025, 6, day, tzinfo=UTC), **counts)
        assert dollars(price, **counts) == pytest.approx(expected, rel=1e-12)


def test_a_date_chooses_among_steps_too():
    for day in (datetime(2026, 4, 29, tzinfo=UTC), datetime(2026, 4, 30, tzinfo=UTC)):
        price = price_of("grok-4.20", date=day.date())
        for n_tokens in (199_999, 200_000):
            expected = oracle("grok-4.20", "x-ai", day, n_tokens, output=10)
            assert dollars(price, n_tokens=n_tokens, output=10) == pytest.approx(expected, rel=1e-12)


def test_without_a_date_the_price_is_that_of_today():
    # Google announced a rise for 2027; an announced price is not charged before its day.
    counts = {"n_tokens": 900, "output": 40}
    expected = oracle("gemini-3.6-flash", "google", None, **counts)
    assert dollars(price_of("gemini-3.6-flash"), **counts) == pytest.approx(expected, rel=1e-12)


def test_the_price_says_where_it_comes_from():
    price = price_of("o3", date="2025-07-01")
    release = genai_prices.__version__
    assert price.name == "openai/o3"
    assert price.source == f"genai-prices {release}, price of 2025-07-01"
    assert str(price) == (
        f"openai/o3 (genai-prices {release}, price of 2025-07-01, since 2025-06-10): "
        "input 2, cached_input 0.5, output 8; USD per million tokens"
    )


def is_refused(model):
    """Whether a model has no price, or one that a day and its tokens do not settle."""
    dated = model.prices if isinstance(model.prices, list) else []
    by_hour = any(hasattr(each.constraint, "start_time") for each in dated)
    held = model.get_prices(NOON)
    return by_hour or held.input_mtok is None or held.requests_kcount is not None


def test_every_model_costs_what_genai_prices_says_or_is_refused():
    for seller in providers:
        for model in seller.models:
            if is_refused(model):
                with pytest.raises(SettingError, match="time of day|no price of input|besides its tokens"):
                    price_of(model.id, provider=seller.id, date=NOON.date())
                continue
            price = price_of(model.id, provider=seller.id, date=NOON.date())
            assert price.name == f"{seller.id}/{model.id}"
            usage = {"input_tokens": 300_000}
            usage |= {"output_tokens": 100} if price.output is not None else {}
            usage |= {"cache_read_tokens": 1_000} if price.cached_input is not None else {}
            usage |= {"cache_write_tokens": 2_000} if price.cache_write is not None else {}
            expected = model.calc_price(genai_prices.Usage(**usage), seller, genai_request_timestamp=NOON)
            got = dollars(
                price,
                n_tokens=300_000,
                cached=usage.get("cache_read_tokens", 0),
                cache_write=usage.get("cache_write_tokens", 0),
                output=usage.get("output_tokens", 0),
            )
            assert got == pytest.approx(float(expected.total_price), rel=1e-12), price


def test_a_class_without_a_rate_is_not_charged_as_input():
    # genai-prices charges it as plain input; here a missing rate is unknown, and the choice is the user's.
    price = price_of("gpt-4o", date="2026-11-01")
    assert price.cache_write is None
    assert np.isnan(dollars(price, n_tokens=10, cache_write=4))
    as_input = replace(price, cache_write=price.input)
    expected = oracle("gpt-4o", "openai", NOON, 10, cache_write=4)
    assert dollars(as_input, n_tokens=10, cache_write=4) == pytest.approx(expected, rel=1e-12)


def test_a_price_that_changes_with_the_hour_asks_for_the_hour():
    with pytest.raises(SettingError) as caught:
        price_of("deepseek-v4-flash", date="2026-11-01")
    assert str(caught.value) == (
        "price_of: the price of 'deepseek/deepseek-v4-flash' depends on the time of day (01:00 to 04:00 UTC, "
        "06:00 to 10:00 UTC); got 2026-11-01, which has none. Give a time too, as in date='2026-11-01T12:00'."
    )
    costs = set()
    for text in ("2026-11-01T02:00", "2026-11-01T05:00", "2026-11-01T09:59", "2026-11-01T10:00"):
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
        expected = oracle("deepseek-v4-flash", "deepseek", moment, 1_000, cached=9, output=5)
        for given in (text, moment):
            price = price_of("deepseek-v4-flash", date=given)
            assert dollars(price, n_tokens=1_000, cached=9, output=5) == pytest.approx(expected, rel=1e-12)
        assert price.source.endswith(f"price of {text.replace('T', ' ')} UTC")
        costs.add(expected)
    assert len(costs) == 2


def test_a_moment_is_taken_in_utc():
    # 00:30 on 10 June in Berlin is still 9 June in UTC.
    assert price_of("o3", date="2025-06-10T00:30+02:00").input == 10
    assert price_of("o3", date="2025-06-10T00:30+00:00").input == 2


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"model": "sonar", "provider": "perplexity"}, "'perplexity/sonar' charges .* USD per 1,000 requests"),
        ({"model": "gemma-3", "provider": "google"}, r"\(it has: nothing\), so its cost is unknown, not 0"),
        ({"model": "whisper-large-v3", "provider": "groq"}, "has no price of input tokens for 'groq/whisper"),
        ({"model": "gpt4o"}, r"model 'gpt4o' \(no provider was named\) is unknown .* Near: 'gpt-4o' of "),
        ({"model": "z-ai/glm-5"}, "Near: 'z-ai/glm-5' of .*openrouter"),
        ({"model": "gpt-9-nano", "provider": "openai"}, r"\(provider 'openai'\) .* Near: 'gpt-5-nano' of openai"),
        ({"model": "qqzzqqzzqq"}, r"unknown to genai-prices .* Give your own Price\(name, input=…\)"),
        ({"model": "gpt-4o", "provider": "opnai"}, "provider 'opnai' is unknown; known: .* mean 'openai'"),
        ({"model": " "}, "'model' must be a model's name; got ' '"),
        ({"model": "o3", "provider": 3}, "'provider' must be a provider's name or None; got 3"),
        ({"model": "o3", "date": "June"}, "'date' must be a date, as in '2025-06-10'; got 'June'"),
        ({"model": "o3", "date": 2025}, "'date' must be a date, as in '2025-06-10'; got 2025"),
    ],
)  # fmt: skip
def test_what_has_no_price_is_refused_in_words(asked, words):
    with pytest.raises(SettingError, match=f"^price_of: .*{words}"):
        price_of(**asked)


def test_an_updater_elsewhere_does_not_change_the_cited_prices():
    set_custom_snapshot(DataSnapshot([], from_auto_update=True))
    try:
        assert price_of("o3", date="2025-06-09").input == 10
    finally:
        set_custom_snapshot(None)


# -- the package, the network, the import


def run(code):
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    return out.stdout.strip()


def test_without_genai_prices_there_is_a_message_and_an_own_price_works():
    said = run(
        "import sys\nsys.modules['genai_prices'] = None\n"
        "from packtools.money import Price\nfrom packtools.prices import price_of\n"
        "print(Price('own', 3).cost(1000))\n"
        "try: price_of('gpt-4o')\nexcept ImportError as error: print(type(error).__name__, error)"
    )
    assert said.splitlines() == [
        "0.003",
        f"{MissingExtra.__name__} price_of: needs the package 'genai-prices', which is not installed. "
        "Run: pip install 'rag-packtools[prices]'",
    ]


def test_import_stays_light():
    names = ["pandas", "genai_prices", "pydantic", "httpx2", "scipy", "matplotlib"]
    assert run(f"import packtools.prices, sys; print([m for m in {names} if m in sys.modules])") == "[]"


def test_no_socket_is_opened_and_no_thread_started():
    said = run(
        "import socket, ssl, threading\n"
        "class Closed(socket.socket):\n"
        "    def __init__(self, *given, **named): raise RuntimeError('a socket')\n"
        "def refuse(*given, **named): raise RuntimeError('a look-up')\n"
        "socket.socket, socket.create_connection, socket.getaddrinfo = Closed, refuse, refuse\n"
        "try: socket.socket()\nexcept RuntimeError: print('closed')\n"
        "from packtools.prices import price_of\n"
        "print(price_of('o3', date='2025-06-09').input)\n"
        "try: price_of('no such model')\nexcept ValueError: print('refused')\n"
        "print(threading.active_count())"
    )
    assert said.split() == ["closed", "10.0", "refused", "1"]
