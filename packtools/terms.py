"""The TF-IDF vectoriser of a run's passages: fitted, or built again from its stored terms and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from packtools.arrays import Floats

__all__ = ["fit_vectoriser", "stored_vectoriser"]


def fit_vectoriser(texts: Sequence[str]) -> Any:
    """Fit scikit-learn's TfidfVectorizer, as it comes; None where the texts hold no word."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        return TfidfVectorizer().fit(texts)
    except ValueError:  # nothing but stop characters: there is no vocabulary
        return None


def stored_vectoriser(terms: Sequence[str], idf: Floats) -> Any:
    """Build a fitted vectoriser again; None without terms.

    Parameters
    ----------
    terms : sequence of str
        Each once, in the order of the columns.
    idf : ndarray of float64, shape (n_terms,)

    Notes
    -----
    Gives the very vectors that the first one gave, bit for bit.

    Examples
    --------
    >>> first = fit_vectoriser(["moons of Saturn", "rings of Saturn"])
    >>> again = stored_vectoriser(first.get_feature_names_out().tolist(), first.idf_)
    >>> bool((again.transform(["Saturn rings"]) != first.transform(["Saturn rings"])).nnz)
    False
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not len(terms):
        return None
    made = TfidfVectorizer(vocabulary=list(terms))
    made.idf_ = idf
    return made
