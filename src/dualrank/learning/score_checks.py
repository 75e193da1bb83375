"""Whether scores can rank: they are finite numbers, and tell documents apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.scaling import Scaler
from dualrank.errors import DataError, SettingsError
from dualrank.rankers.ranker import Ranker

if TYPE_CHECKING:
    from dualrank.learning.model import Model

MOST_TIED = 0.8
"""Of pairs of documents of one list; with more equal scores, a ranking is mostly chance."""
NEARLY = 1e-6
"""Scores of a list that differ by less than this share of them differ by rounding."""
OF_ONE_QUERY = "documents of one query"
MOST_LISTS = 100_000
"""So many lists speak for all that were displayed."""

Scores = NDArray[np.floating]


def require_finite(
    scores: Scores,
    features: NDArray[np.float32],
    scaled: NDArray[np.float32],
    model: Model,
    name: Callable[[int], str],
) -> None:
    """Refuse scores that are no finite numbers, and name a document with its largest feature."""
    finite = np.isfinite(scores)
    if finite.all():
        return
    row = int(np.argmin(finite))
    column = int(model.scaler.kept[np.argmax(np.nan_to_num(np.abs(scaled[row])))])
    count = int((~finite).sum())
    raise DataError(score_not_finite(model, name(row), features[row, column], column, count))


def score_not_finite(
    model: Model, document: str, value: np.float32, column: int, count: int
) -> str:
    """The sentence against so many scores that are no finite numbers, of which this is the first.

    The document has this value of the feature in this column, its largest.
    """
    if not model.ranker.is_finite():
        return (
            "the ranker's weights are no finite numbers, so that it ranks nothing: train again, "
            "with a lower learning rate or with scaled features"
        )
    feature = repr(model.feature_names[column]) if model.feature_names else column + 1
    return (
        f"{document}: its score is no finite number, nor are those of {count - 1:,} others; its "
        f"feature {feature} is {value:g}: correct it, or train with features of ordinary size"
    )


def name_by_row(row: int) -> str:
    """A document of which only the row is known."""
    return f"document {row + 1}"


def name_in(data: Dataset, row: int) -> str:
    """A document by its own name and that of its query."""
    query = data.query_ids[np.searchsorted(data.offsets, row, side="right") - 1]
    return f"document {data.ids_of_documents()[row]} of query {query}"


@dataclass
class Ties:
    """Pairs of documents of one group, and how many of them have equal scores."""

    tied: float = 0.0
    pairs: float = 0.0

    @property
    def share(self) -> float:
        """That of pairs with equal scores; 0 where there are no pairs."""
        return self.tied / self.pairs if self.pairs else 0.0

    def add(self, scores: Scores, groups: NDArray[np.integer], nearly: float = NEARLY) -> None:
        """Count further groups; scores that differ by rounding only are equal in all of a group."""
        tied, pairs = _tied_pairs(scores, groups, nearly)
        self.tied, self.pairs = self.tied + tied, self.pairs + pairs

    def warning(self, of: str) -> str | None:
        """In words, where most documents `of` what they are have one score."""
        if self.share < MOST_TIED:
            return None
        return (
            f"this ranker tells hardly any documents apart: {_percent(self.share)} of all pairs of "
            f"{of} have equal scores"
        )


def tied_share(scores: Scores, groups: NDArray[np.integer], nearly: float = NEARLY) -> float:
    """The share of pairs within groups that have equal scores; 0 where there are no pairs."""
    found = Ties()
    found.add(scores, groups, nearly)
    return found.share


def _tied_pairs(scores: Scores, groups: NDArray[np.integer], nearly: float) -> tuple[float, float]:
    order = np.lexsort((scores, groups))
    values, group = scores[order].astype(np.float64), groups[order]
    begins = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if len(group) else group
    if len(begins) == 0:
        return 0.0, 0.0
    sizes = np.diff(np.append(begins, len(group)))
    low, high = values[begins], values[begins + sizes - 1]
    alike = np.repeat(high - low <= nearly * np.maximum(np.abs(low), np.abs(high)), sizes)
    same = (values[1:] == values[:-1]) | alike[1:]
    new = np.append(True, ~same)
    new[begins] = True
    runs = np.diff(np.append(np.flatnonzero(new), len(values)))
    return _pairs(runs), _pairs(sizes)


def hardly_any_differ(scores: Scores, groups: NDArray[np.integer] | None = None) -> str | None:
    """A warning in words, where most documents (of a query, by `groups`) have one score."""
    found = Ties()
    found.add(scores, np.zeros(len(scores), np.int64) if groups is None else groups)
    return found.warning("documents" if groups is None else OF_ONE_QUERY)


def check_trained(
    ranker: Ranker, scaler: Scaler, dataset: Dataset, lists: RankedLists, advice: str
) -> list[str]:
    """Try a ranker on what was displayed: an error if scores are not finite; warnings in words.

    `advice` is what a training may do against both.
    """
    step = -(-len(lists) // MOST_LISTS)
    documents = lists.documents[::step]
    mask = documents != PADDING
    rows, place = np.unique(documents[mask], return_inverse=True)
    compact = np.full_like(documents, PADDING)
    compact[mask] = place
    features = dataset.features[rows]
    shown = RankedLists(compact, lists.queries[::step])
    scores = ranker.predict_lists(scaler.transform(features), shown)[mask]
    finite = np.isfinite(scores)
    if not finite.all():
        sizes = np.nan_to_num(np.abs(features)).max(axis=0)
        column = int(sizes.argmax())
        name = repr(dataset.feature_names[column]) if dataset.feature_names else column + 1
        raise SettingsError(
            "training ended in scores that are no finite numbers, for "
            f"{_percent(1 - finite.mean())} of what was displayed (feature {name} reaches "
            f"{sizes[column]:g}): {advice}"
        )
    groups = np.broadcast_to(np.arange(len(documents))[:, None], mask.shape)[mask]
    share = tied_share(scores, groups)
    if share < MOST_TIED:
        return []
    _, alike = np.unique(features, axis=0, return_inverse=True)
    by_features = tied_share(alike.ravel()[place].astype(np.float64), groups, nearly=0.0)
    told = (
        f"the ranker tells hardly any documents apart: {_percent(share)} of all pairs of documents "
        "of one list have equal scores"
    )
    if by_features >= MOST_TIED:
        return [f"{told}, as {_percent(by_features)} have equal features"]
    return [f"{told}: {advice}"]


def _pairs(sizes: NDArray[np.integer]) -> float:
    return float((sizes * (sizes - 1.0) / 2).sum())


def _percent(share: float) -> str:
    """Not 100% where it is not all of them, nor 0% where it is some."""
    return f"{share:.0%}" if share in (0.0, 1.0) or 0.005 <= share < 0.995 else f"{share:.3%}"
