"""Names for the array types that the pipeline passes around."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Floats", "Ints", "Longs"]

Ints = npt.NDArray[Any]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
