"""Where the shared facts are, and fixtures that several test files use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


def vectors(name: str) -> list[dict]:
    """Rows of a golden-vector file; empty where the shared folder is absent (tests then skip)."""
    path = SHARED / "vectors" / name
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


@pytest.fixture
def real() -> Path:
    """Folder of real run files."""
    if not (SHARED / "real").is_dir():
        pytest.skip("../shared/real is not here: the real run files lie beside the project")
    return SHARED / "real"
