"""Whether a difference between two rankers is more than chance."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.errors import DataError, SettingsError
from dualrank.pace import Heard
from dualrank.progress import shows_progress

# Up to this many differences, all 2^n sign patterns are cheaper than a sample is good.
EXACT_UP_TO = 16

_CHUNK = 65_536
_WORD = 64


@dataclass(frozen=True)
class FisherResult:
    """The mean of a − b, and how often chance alone reaches it.

    `permutations` is the number of sign patterns looked at: all of them if `exact`.
    """

    difference: float
    p_value: float
    permutations: int
    exact: bool


@shows_progress("testing the difference")
def fisher_test(
    a: ArrayLike,
    b: ArrayLike,
    *,
    permutations: int = 100_000,
    seed: int | np.random.Generator = 0,
    progress: Heard | None = None,
) -> FisherResult:
    """Fisher's two-sided randomisation test on paired per-query values.

    If two rankers are equally good, which of the two values of a query belongs to which ranker
    is chance, so every difference d_q = a_q − b_q is as likely as −d_q. With random signs s,

        p = P(|Σ_q s_q d_q| ≥ |Σ_q d_q|).

    A sample of n patterns of which k reach the observed sum gives p = (k + 1) / (n + 1), which
    counts the observed pattern itself and is never 0. With at most 16 differences all patterns
    are counted instead and p is exact. Pairs of equal values have no sign and take no part; a
    query that is nan on both sides was skipped by the metric and is left out.

    >>> fisher_test([0.5, 0.75, 1.0], [0.25, 0.5, 0.75])
    FisherResult(difference=0.25, p_value=0.25, permutations=8, exact=True)
    """
    if permutations < 1:
        raise SettingsError(f"permutations is {permutations}; it must be 1 or more")
    paired = _paired_differences(a, b)
    mean = float(paired.mean())
    differences = paired[paired != 0]
    exact = len(differences) <= EXACT_UP_TO
    patterns = 2 ** len(differences) if exact else permutations
    # The order of additions differs between patterns, so equal sums differ in their last bits.
    bar = abs(differences.sum()) - 1e-12 * np.abs(differences).sum()

    rng = np.random.default_rng(seed)
    reached = 0
    for first in range(0, patterns, _CHUNK):
        sums = np.zeros(min(_CHUNK, patterns - first))
        for start in range(0, len(differences), _WORD):
            if exact:
                signs = np.arange(first, first + len(sums), dtype=np.uint64)
            else:
                signs = rng.integers(0, 2**64, len(sums), dtype=np.uint64)
            _add_signed_sums(sums, signs, differences[start : start + _WORD])
        reached += int(np.count_nonzero(np.abs(sums) >= bar))
        if progress is not None:
            progress(first + len(sums), patterns)
    p_value = reached / patterns if exact else (reached + 1) / (patterns + 1)
    return FisherResult(mean, p_value, patterns, exact)


@numba.njit(cache=True)
def _add_signed_sums(
    sums: NDArray[np.float64], signs: NDArray[np.uint64], differences: NDArray[np.float64]
) -> None:
    """Add Σ_j ±d_j to every sum, with the signs of up to 64 differences packed in one word.

    Eight differences share one byte of the word, and a table holds their sum for each of its
    256 values: a pattern costs one look-up for eight differences, and the tables fit the
    fastest cache.
    """
    table = np.zeros((8, 256))
    for byte in range((len(differences) + 7) // 8):
        for value in range(256):
            for bit in range(min(8, len(differences) - 8 * byte)):
                d = differences[8 * byte + bit]
                table[byte, value] += d if value >> bit & 1 else -d
    for i in range(len(sums)):
        word = signs[i]
        for byte in range(8):
            sums[i] += table[byte, word >> np.uint64(8 * byte) & np.uint64(255)]


def _paired_differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.ndim != 1 or left.shape != right.shape:
        raise DataError(
            "a and b must be one value per query each, for the same queries; "
            f"they have shapes {left.shape} and {right.shape}"
        )
    skipped = np.isnan(left) & np.isnan(right)
    bad = np.flatnonzero(~skipped & ~(np.isfinite(left) & np.isfinite(right)))
    if len(bad):
        i = bad[0]
        raise DataError(
            f"pair {i} is {left[i]:g} and {right[i]:g}; both must be finite, or nan together"
        )
    if skipped.all():
        raise DataError("there is no pair of values to compare")
    return (left - right)[~skipped]
