"""The recorded behaviour of the character packer, case by case."""

from __future__ import annotations

import pytest
from conftest import vectors

import packtools as pt

CASES = vectors("char_packer.jsonl")
if not CASES:
    pytest.skip(
        "../shared/vectors is not here: the recorded cases lie beside the project", allow_module_level=True
    )


def packed(case):
    given = case["input"]
    config = pt.ContextPackingConfig.from_mapping(given["config"])
    return pt.pack_context(
        query=given["query"], doc_ids=given["doc_ids"], passages=given["passages"], config=config
    )


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_pack_context_gives_the_recorded_outcome(case):
    expected = case["expected"]
    if "error" in expected:
        with pytest.raises(pt.PackerError):
            packed(case)
        return
    found = packed(case)
    pt.verify_spans(found.packed)
    given = found.to_dict()
    assert list(found.passages) == expected["passages"]
    assert found.context == " ".join(expected["passages"])
    assert given["compression_ratio"] == pytest.approx(expected["compression_ratio"], abs=1e-9)
    for name in ("retained_doc_ids", "dropped_doc_ids", "original_context_chars", "packed_context_chars"):
        assert given[name] == expected[name]
    assert given["spans"] == expected["spans"]
