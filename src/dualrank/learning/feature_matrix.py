"""The rows that a scikit-learn style estimator is given: a matrix, and names if it has them.

What is checked, and what is said about it, follows scikit-learn: features of other names, or in
another order, are refused; names on one side only are a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.data.feature_rows import FeatureRows
from dualrank.data.frames import column_names, is_frame, to_table
from dualrank.data.index_columns import written_as_index
from dualrank.errors import DataError


class RowsError(DataError, ValueError):
    """Rows that do not fit; a ValueError, too, as which scikit-learn's tools know it."""


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
    """Features, and what their columns are called where they were columns of a data frame."""

    values: NDArray[np.float32]
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, X: Any, without: Sequence[str] = ()) -> FeatureMatrix:
        """From a matrix or a data frame, of which the columns in `without` are no features."""
        if not is_frame(X):
            try:
                dense = X.toarray() if hasattr(X, "toarray") else X
                return cls(np.asarray(dense, dtype=np.float32))
            except (TypeError, ValueError, OverflowError) as error:
                raise RowsError(f"X must be a matrix of numbers ({error})") from error
        table = to_table(X, "X")
        left_out = {*without, *written_as_index(table.schema)}
        chosen = [name for name in table.column_names if name not in left_out]
        if not chosen:
            raise RowsError("X has no columns that are features")
        rows = FeatureRows.of(table.select(chosen), "X", names=chosen, keys=())
        named = column_names(X) is not None and rows.names is not None
        return cls(rows.matrix, rows.names if named else None)

    def check(self, count: int, names: Sequence[str] | None) -> None:
        """Refuse other features than those that were learned from."""
        known = None if names is None else tuple(names)
        if self.names is not None and known is None:
            warnings.warn(
                "X has feature names, but ClickRanker was fitted without feature names",
                stacklevel=3,
            )
        elif self.names is None and known is not None:
            warnings.warn(
                "X does not have valid feature names, but ClickRanker was fitted with feature "
                "names",
                stacklevel=3,
            )
        elif self.names is not None and known is not None and self.names != known:
            raise RowsError(
                "The feature names should match those that were passed during fit: "
                + _difference(self.names, known)
            )
        if self.values.ndim != 2:
            raise RowsError(
                f"Reshape your data: X is a matrix of rows by features, and this has "
                f"{self.values.ndim} dimensions"
            )
        if self.values.shape[1] != count:
            raise RowsError(
                f"X has {self.values.shape[1]} features, but ClickRanker is expecting {count} "
                "features as input"
            )


def take_apart(X: Any, columns: Mapping[str, Any]) -> tuple[FeatureMatrix, dict[str, Any]]:
    """The features, and what else is known of each row: arrays, or columns of `X` by their name."""
    named = {of for of in columns.values() if isinstance(of, str)}
    found = {}
    for meaning, of in columns.items():
        if isinstance(of, str):
            if not is_frame(X) or of not in (table := to_table(X, "X")).column_names:
                raise RowsError(f"{meaning} is {of!r}, which is no column of X")
            found[meaning] = table[of].to_numpy()
        else:
            found[meaning] = of
    return FeatureMatrix.of(X, sorted(named)), found


def _difference(found: Sequence[str], known: Sequence[str]) -> str:
    unseen = [name for name in found if name not in known]
    missing = [name for name in known if name not in found]
    if not unseen and not missing:
        return f"they are in another order; expected {_some(known)}"
    said = [f"unseen at fit time: {_some(unseen)}"] if unseen else []
    if missing:
        said.append(f"seen at fit time, yet now missing: {_some(missing)}")
    return "; ".join(said)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown}, …" if len(names) > 5 else shown
