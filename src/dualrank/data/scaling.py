"""Feature scaling that is learned on training data and applied to all data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.errors import DataError, SettingsError

Floats = NDArray[np.float64]

KINDS = ("none", "standard", "minmax", "log")
BLOCK_VALUES = 1 << 18
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class Scaler:
    """y = (g(x) - shift) · scale on the columns that vary in training.

    Columns that are constant in training are dropped. That is exact: such a column adds a
    constant to every score, which a bias can hold, and in training nothing can be learned from
    it. The kinds are

    - `none`: y = x, which may be missing (nan);
    - `standard`: zero mean and unit variance in training;
    - `minmax`: 0 to 1 in training; other data may lie outside;
    - `log`: g(x) = sign(x) · log(1 + |x|), then as `standard`, for counts and other long tails.

    >>> scaler = Scaler.fit(np.array([[1.0, 7.0], [3.0, 7.0]]), kind="standard")
    >>> scaler.transform(np.array([[2.0, 9.0], [5.0, 7.0]]))
    array([[0.],
           [3.]], dtype=float32)
    """

    kind: str
    input_count: int
    kept: NDArray[np.int64]
    shift: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fit(cls, features: NDArray[np.floating], *, kind: str = "standard") -> Scaler:
        """Learn from the features of training documents."""
        if kind not in KINDS:
            raise SettingsError(f"the scaling is {kind!r}; expected one of {', '.join(KINDS)}")
        if features.ndim != 2 or features.size == 0:
            raise DataError(
                f"the features have shape {features.shape}; "
                "expected a matrix with at least one document and one feature"
            )
        return cls.fit_parts([features], kind=kind)

    @classmethod
    def fit_parts(
        cls,
        parts: Sequence[NDArray[np.floating] | None],
        *,
        kind: str = "standard",
        together: Callable[[Floats], Floats] = lambda table: table,
    ) -> Scaler:
        """Learn from matrices that need not be in memory, one of them at least with documents.

        What is None is another worker's. `together` then gives everybody a table of which each has
        filled in the rows of its own parts, and left the others 0: what is added up over parts is
        the same, to the bit, whoever held them.
        """
        extremes = [None if part is None else _extremes(part, kind) for part in parts]
        low, high = _least_and_most(_filled(extremes, together))
        broken = ~(np.isfinite(low) & np.isfinite(high))
        if broken.any():
            first = int(np.argmax(broken)) + 1
            raise DataError(f"feature {first} holds nan or infinity; expected numbers")
        kept = np.flatnonzero(low != high)
        if len(kept) == 0:
            raise DataError(
                f"each of the {len(low)} features is constant in training; "
                "expected at least one that varies"
            )
        shift, scale = np.zeros(len(kept)), np.ones(len(kept))
        if kind == "minmax":
            shift = low[kept]
            scale = 1 / (high[kept] - shift)
        elif kind != "none":
            shift, deviation = _mean_and_deviation(parts, kept, kind, together)
            scale = 1 / deviation
        return cls(kind, len(low), kept, shift, scale)

    @property
    def output_count(self) -> int:
        """How many columns are left."""
        return len(self.kept)

    def transform(self, features: NDArray[np.floating]) -> NDArray[np.float32]:
        """A new matrix with the scaled columns.

        Values too large for float32 become the largest that it can hold, so that data unlike
        the training data never bring an infinity into a ranker.
        """
        if features.ndim != 2 or features.shape[1] != self.input_count:
            found = features.shape[1] if features.ndim == 2 else 0
            raise DataError(
                f"the data have {found} features; the scaling was learned on {self.input_count}"
            )
        out = np.empty((len(features), self.output_count), np.float32)
        start = 0
        for block in _blocks(features, self.kept, self.kind):
            if self.kind != "none":
                block -= self.shift
                block *= self.scale
            np.clip(block, -_LARGEST, _LARGEST, out=block)
            out[start : start + len(block)] = block
            start += len(block)
        return out

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values; floats survive the way there and back exactly."""
        return {
            "kind": self.kind,
            "input_count": self.input_count,
            "kept": self.kept.tolist(),
            "shift": self.shift.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Scaler:
        """The scaler that `to_dict` described."""
        try:
            scaler = cls(
                str(values["kind"]),
                int(values["input_count"]),
                np.array(values["kept"], np.int64),
                np.array(values["shift"], np.float64),
                np.array(values["scale"], np.float64),
            )
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise DataError(f"the description of the scaling is damaged ({error!r:.200})") from None
        numbers = np.concatenate([scaler.shift.ravel(), scaler.scale.ravel()])
        if not np.isfinite(numbers).all() or not (scaler.scale > 0).all():
            raise DataError(
                "the scaling holds a number that is not finite, or a scale that is not above 0"
            )
        lengths = {scaler.kept.shape, scaler.shift.shape, scaler.scale.shape}
        inside = (scaler.kept >= 0) & (scaler.kept < scaler.input_count)
        known = scaler.kind in KINDS and scaler.kept.ndim == 1 and len(lengths) == 1
        if not known or not inside.all() or not (np.diff(scaler.kept) > 0).all():
            raise DataError("the description of the scaling contradicts itself")
        return scaler


def _blocks(
    features: NDArray[np.floating], kept: NDArray[np.int64], kind: str
) -> Iterator[NDArray[np.float64]]:
    """The kept columns as new float64 matrices of some rows each, with g applied."""
    step = max(1, BLOCK_VALUES // features.shape[1])
    for start in range(0, len(features), step):
        block = features[start : start + step, kept].astype(np.float64)
        if kind == "log":
            block = np.copysign(np.log1p(np.abs(block)), block)
        yield block


def _extremes(features: NDArray[np.floating], kind: str) -> Floats:
    """The least and the largest value of every column, one after the other.

    Unscaled columns may have missing values. One that is missing here and there tells documents
    apart, one that always is does not: they go from 0 to 1, and from 0 to 0.
    """
    if len(features) == 0:
        return np.repeat([np.inf, -np.inf], features.shape[1])
    low, high = features.min(axis=0), features.max(axis=0)
    if kind == "none":
        missing = np.isnan(low)
        always = np.isnan(features[:, missing]).all(axis=0)
        high[missing] = np.where(always, 0.0, 1.0)
        low[missing] = 0.0
    return np.concatenate([low, high]).astype(np.float64)


def _least_and_most(table: Floats) -> tuple[Floats, Floats]:
    """The extremes of all parts together."""
    low, high = np.split(table, 2, axis=1)
    return low.min(axis=0), high.max(axis=0)


def _mean_and_deviation(
    parts: Sequence[NDArray[np.floating] | None],
    kept: NDArray[np.int64],
    kind: str,
    together: Callable[[Floats], Floats],
) -> tuple[Floats, Floats]:
    """Mean and standard deviation per column, in two passes.

    The second pass sums squares of what is left after the mean is taken away, so that a column
    of large numbers with a small spread loses nothing. It divides by the number of rows.
    """

    def added(of: Callable[[Floats], Floats]) -> Floats:
        rows = list[Floats | None]()
        for part in parts:
            total = np.zeros(len(kept))
            for block in () if part is None else _blocks(part, kept, kind):
                total = total + of(block).sum(axis=0)
            rows.append(None if part is None else total)
        table: Floats = _filled(rows, together).sum(axis=0)
        return table

    counts = [None if part is None else np.array([float(len(part))]) for part in parts]
    count = _filled(counts, together).sum()
    mean = added(lambda block: block) / count
    return mean, np.sqrt(added(lambda block: np.square(block - mean)) / count)


def _filled(rows: Sequence[Floats | None], together: Callable[[Floats], Floats]) -> Floats:
    """A table of these rows, with those of other workers."""
    width = next(len(row) for row in rows if row is not None)
    return together(np.stack([np.zeros(width) if row is None else row for row in rows]))
