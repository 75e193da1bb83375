"""What every click model can do: fit, predict, explain, judge a log, simulate, be kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dualrank.clicks.browsing import Pages
from dualrank.clicks.models.counting import Floats, displays, require_countable, require_skips
from dualrank.clicks.models.em import EM, Prior
from dualrank.clicks.models.files import write_fitted
from dualrank.clicks.models.fitted import Fitted, Layout
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.clicks.sampling import sample_sessions
from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.inputs import log_from
from dualrank.data.lists import RankedLists, require_no_gaps
from dualrank.errors import SettingsError

SURE = 1e-6
"""No click is held to be more certain than this: one surprise must not cost infinitely much."""

ROWS_PER_BLOCK = 100_000


@dataclass(frozen=True, eq=False)
class Perplexity:
    """2 to the mean surprise of a click in bits: 1 is certainty, 2 is a coin."""

    per_rank: Floats

    @property
    def overall(self) -> float:
        """The mean over ranks, as it is usually reported."""
        return float(np.nanmean(self.per_rank))


class ClickModel(ABC):
    """A model of how users click, with parameters per query–document pair and for all of them.

    Parameters of documents belong to the index of the log that the model was fitted on; another log
    is matched by the names in its catalogue, or shares the index where one of them has no names.
    Documents that were never seen have the mean of the prior. `prior` is that of the documents'
    parameters; `em` is for the models that have no closed form.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    follows: ClassVar[bool] = True
    """Whether a click depends on what was clicked above it, so that lists must not have gaps."""

    _fitted: Fitted | None = None

    def __init__(self, prior: Prior | None = None, em: EM | None = None) -> None:
        self.prior = prior or Prior()
        self.em = em or EM()

    @property
    def fitted(self) -> Fitted:
        """What was read off a log."""
        if self._fitted is None:
            raise SettingsError(f"the click model {self.name} has not been fitted")
        return self._fitted

    @fitted.setter
    def fitted(self, fitted: Fitted) -> None:
        self._fitted = fitted

    def fit(self, log: ClickLog | Any) -> Self:
        """Read the parameters off a log, which may be a file or a data frame."""
        log = log_from(log)
        require_countable(log, "fit a click model on")
        require_skips(log)
        self._require_whole(log.lists)
        self.fitted = self._fit(log)
        return self

    @abstractmethod
    def _fit(self, log: ClickLog) -> Fitted: ...

    @abstractmethod
    def _browse(self, layout: Layout) -> Pages: ...

    def browse(self, lists: RankedLists, catalogue: Catalogue | None = None) -> Pages:
        """The model's users in front of these lists."""
        self._require_whole(lists)
        return self._browse(self.fitted.lay_out(lists, catalogue))

    def _require_whole(self, lists: RankedLists) -> None:
        if self.follows:
            others = "pbm, pbm-trust and click-through look at each position for itself"
            require_no_gaps(lists, f"the click model {self.name}", others)

    def click_probabilities(
        self,
        lists: RankedLists,
        clicks: NDArray[np.bool_] | None = None,
        *,
        catalogue: Catalogue | None = None,
    ) -> Floats:
        """P(c_k = 1) on each list, or, given its clicks, P(c_k = 1 | c_1 … c_(k−1))."""
        pages = self.browse(lists, catalogue)
        return pages.marginal() if clicks is None else pages.conditional(clicks)

    def log_likelihood(self, log: ClickLog | Any) -> float:
        """The log probability (natural) of all clicks and skips of a log."""
        return -float(self._surprise(log_from(log)).sum())

    def perplexity(self, log: ClickLog | Any, *, given_clicks: bool = False) -> Perplexity:
        """How well clicks are predicted rank by rank.

        Usually that is before the session begins, from P(c_k = 1); `given_clicks` predicts each
        from those above it, with P(c_k = 1 | c_1 … c_(k−1)).
        """
        log = log_from(log)
        shown = displays(log)[:, : self.fitted.depth]
        if given_clicks:
            surprise = self._surprise(log)
        else:
            p = np.clip(self.browse(log.lists, log.catalogue).marginal(), SURE, 1 - SURE)
            clicks = log.clicks_per_list[:, : self.fitted.depth]
            surprise = -(clicks * np.log(p) + (shown - clicks) * np.log(1 - p)).sum(axis=0)
        sessions = shown.sum(axis=0)
        mean = np.divide(surprise, sessions, out=np.full(len(sessions), np.nan), where=sessions > 0)
        return Perplexity(np.exp(mean))

    def log_likelihood_of_rows(self, log: ClickLog) -> Floats:
        """The log probability of the clicks and skips of one session of every row of a log."""
        blocks = [-surprise.sum(axis=1) for _, surprise in self._surprises(log)]
        return np.concatenate(blocks) if blocks else np.zeros(0)

    def _surprise(self, log: ClickLog) -> Floats:
        """−Σ log P(c_k | c_1 … c_(k−1)) over the sessions, rank by rank."""
        total = np.zeros(min(self.fitted.depth, log.lists.depth))
        for rows, surprise in self._surprises(log):
            total += log.counts[rows] @ surprise
        return total

    def _surprises(self, log: ClickLog) -> Iterator[tuple[slice, Floats]]:
        """The same of one session of each row, `[rows, ranks]`, in blocks of rows."""
        pages = self.browse(log.lists, log.catalogue)
        depth = pages.attraction.shape[1]
        for start in range(0, len(log.counts), ROWS_PER_BLOCK):
            rows = slice(start, start + ROWS_PER_BLOCK)
            clicks = log.clicks[rows, :depth]
            p = pages.take(log.list_of[rows]).conditional(clicks)
            surprise = -np.log(np.clip(np.where(clicks, p, 1 - p), SURE, 1 - SURE))
            shown = log.lists.mask[log.list_of[rows], :depth]
            yield rows, np.where(shown, surprise, 0.0)

    def relevance(self) -> pa.Table:
        """Every displayed pair: relevance, sessions that displayed it, and a 95% interval.

        `query_id` and `doc_id` name it where the log has names, otherwise `document` is its index.
        """
        fitted, parameter = self.fitted, self.relevance_of_pairs()
        seen = np.flatnonzero(fitted.observations > 0)
        return pa.table(
            {
                **fitted.names(seen),
                "relevance": parameter.values[seen],
                "observations": fitted.observations[seen],
                "low": parameter.low[seen],
                "high": parameter.high[seen],
            }
        )

    def relevance_of_pairs(self) -> PairParameter:
        """What the model takes for relevance, by the index of the log."""
        return self.fitted.pairs["attraction"]

    def sample(
        self,
        lists: RankedLists,
        sessions: int,
        seed: int | np.random.Generator = 0,
        *,
        catalogue: Catalogue | None = None,
    ) -> ClickLog:
        """Let `sessions` users look at lists drawn uniformly, and log what they did."""
        pages = self.browse(lists, catalogue)
        return sample_sessions(pages, lists, sessions, np.random.default_rng(seed), catalogue)

    def save(self, path: str | Path) -> None:
        """Write as .parquet (pairs as rows, the rest as metadata) or as .json."""
        write_fitted(self.name, self.fitted, Path(path))
