"""Every estimate of examination that a log allows, and why it does not allow the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from dualrank.clicks.models.counting import require_skips
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.log_parts import parts_and_dataset
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.data.shards.whole_shards import sample_shards
from dualrank.errors import DataError, SettingsError
from dualrank.learning.dual_estimate import check_refits, estimate_by_dual_learning
from dualrank.learning.likelihood_estimate import estimate_by_likelihood
from dualrank.learning.regression_em import estimate_by_regression_em
from dualrank.propensity.bootstrap import RESAMPLES
from dualrank.propensity.curve_drawing import draw_side_by_side
from dualrank.propensity.curve_words import half_widths, short
from dualrank.propensity.estimators import ESTIMATORS, Estimator, estimate, require_shuffled
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.grouped_parts import grouped_clicks
from dualrank.propensity.propensity import SHOWN, Propensity
from dualrank.rankers.ranker import RankerSettings
from dualrank.sentences import counted, listed, start_of
from dualrank.settings import TrainingSettings, settings_with
from dualrank.showing.axes import SIZE, axes_for
from dualrank.showing.card import card, grid, said

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIKELIHOODS = ("likelihood", "grounded")
TRAINED = ("regression-em", "dla", *LIKELIHOODS)
"""Estimators that train a ranker on the features of the documents."""
METHODS = (*ESTIMATORS, *TRAINED)
REFITS = 5


@dataclass(frozen=True)
class Estimates:
    """What was `found` by each method, and of the others the reason why not."""

    found: dict[str, Propensity] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        refused = f"; refused: {listed(self.refused)}" if self.refused else ""
        return f"Estimates({listed(self.found)}{refused})"

    def _repr_html_(self) -> str:
        """A card for notebooks: examination by every method, and why others are missing."""
        deepest = max((curve.depth for curve in self.found.values()), default=0)
        columns = ("estimator", *(str(k + 1) for k in range(min(deepest, SHOWN))))
        rows = [
            (start_of(name), *_cells(curve, len(columns) - 1)) for name, curve in self.found.items()
        ]
        bounded = any(curve.high is not None for curve in self.found.values())
        notes = [
            "Examination relative to position 1"
            + (", and how far its 95% interval reaches." if bounded else "."),
            f"Positions {SHOWN + 1} to {deepest} are in .found." if deepest > SHOWN else "",
            *(f"{start_of(name)}: not estimated, {why}." for name, why in self.refused.items()),
        ]
        return card(
            "Estimates",
            (counted(len(self.found), "curves"), f"{len(self.refused)} refused"),
            grid(columns, rows) if rows else said("No method found a curve."),
            said(*notes, aside=True),
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw all curves side by side with their intervals; needs matplotlib.

        >>> from matplotlib.figure import Figure
        >>> ax = Estimates({"pbm": Propensity.of([1, 0.5], "pbm")}).plot(Figure().subplots())
        >>> ax.lines[0].get_ydata()
        array([1. , 0.5])
        """
        if not self.found:
            raise DataError(f"no curve was found; {listed(self.refused)} were refused")
        ax = axes_for(ax, width=1.5 * SIZE[0], height=1.25 * SIZE[1])
        draw_side_by_side(ax, self.found)
        return ax


def _cells(curve: Propensity, count: int) -> list[str]:
    """Every position's examination and how far its interval reaches."""
    widths = half_widths(curve) or [""] * curve.depth
    known = [f"{short(e)} {w}".strip() for e, w in zip(curve.examination, widths, strict=True)]
    return [*known[:count], *["–"] * (count - len(known))]


def estimate_propensities(
    log: ClickLog | ShardedLog | Any,
    dataset: Dataset | Any | None = None,
    *,
    methods: Sequence[str | Estimator] | None = None,
    ranker: RankerSettings | None = None,
    over: Literal["auto", "queries", "sessions"] = "auto",
    resamples: int = RESAMPLES,
    refits: int = REFITS,
    settings: TrainingSettings | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Estimates:
    """Estimate examination by every method, or by those that are named or given as functions.

    Whoever names `randomisation` says that the lists were shuffled; otherwise the log must show it.
    `ranker` is what regression-EM (by default linear), dual learning and likelihood (by default a
    network) score documents with. `settings` are for the latter, or given directly (`steps=500`);
    `refits` are for the intervals of dual learning. Log and features may be files or data frames.

    A log in shards is counted one shard after the other. Methods that train, with the features
    beside the shards, look at as many whole shards as fit into memory, and say in
    `details["looked_at"]` at how many.
    """
    settings = settings_with(settings or TrainingSettings(seed=seed), options)
    parts, dataset = parts_and_dataset(log, dataset)
    for method in methods or ():
        if isinstance(method, str) and method not in METHODS:
            raise SettingsError(f"there is no estimator {method!r}; there are {', '.join(METHODS)}")
    check_refits(refits)
    if parts.depth < 2:
        raise DataError("the lists show one position only; there is no examination to compare")
    require_skips(parts)
    grouped = grouped_clicks(parts, over, seed)
    estimates = Estimates()

    @cache
    def to_train_on() -> tuple[ClickLog, Dataset, str | None]:
        """Clicks and features, and how much of a log in shards they are."""
        if parts.sharded is None and dataset is not None:
            return parts.read(), dataset.filled(), None
        if parts.sharded is None or parts.sharded.feature_count is None:
            raise DataError("it needs the features of the documents")
        some = sample_shards(parts.sharded)
        assert some.dataset is not None
        return some.log, some.dataset.filled(), None if some.is_whole else some.sentence

    def find(method: str | Estimator) -> Propensity:
        if not isinstance(method, str) or method in ESTIMATORS:
            if method == "randomisation" and methods is None:
                require_shuffled(grouped)
            return estimate(grouped, method, resamples=resamples, seed=seed)
        clicked, features, looked_at = to_train_on()
        found = train(str(method), clicked, features)
        if looked_at is None:
            return found
        return replace(found, details={**found.details, "looked_at": looked_at})

    def train(method: str, clicked: ClickLog, features: Dataset) -> Propensity:
        if method == "regression-em":
            some = grouped
            if not isinstance(some, GroupedClicks):
                some = GroupedClicks.of(clicked, over, seed)
            return estimate_by_regression_em(
                some, features, ranker=ranker, resamples=resamples, seed=seed
            )
        if method in LIKELIHOODS:
            return estimate_by_likelihood(
                clicked, features, method, ranker=ranker, settings=settings, progress=progress
            )
        return estimate_by_dual_learning(
            clicked, features, ranker=ranker, settings=settings, refits=refits, progress=progress
        )

    for method in METHODS if methods is None else dict.fromkeys(methods):
        name = method if isinstance(method, str) else getattr(method, "__name__", "own")
        try:
            estimates.found[name] = find(method)
        except DataError as error:
            estimates.refused[name] = str(error)
    return estimates
