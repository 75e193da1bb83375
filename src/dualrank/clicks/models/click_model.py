"""What every click model can do: fit, predict, explain, judge a log, simulate, be kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
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
from dualrank.clicks.models.fitted import Fitted, FittedParts, Layout
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.clicks.sampling import sample_sessions
from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists, require_no_gaps
from dualrank.data.log_parts import LogPart, LogParts
from dualrank.errors import SettingsError
from dualrank.progress import shows_progress

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

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> model = dr.click_model("dbn").fit(log)
    >>> probabilities = model.click_probabilities(lists)
    >>> probabilities.shape
    (600, 10)
    >>> model.relevance().column_names
    ['query_id', 'doc_id', 'relevance', 'observations', 'low', 'high']
    """

    name: ClassVar[str]
    title: ClassVar[str]
    follows: ClassVar[bool] = True
    """Whether a click depends on what was clicked above it, so that lists must not have gaps."""

    _fitted: Fitted | None = None
    _by_part: FittedParts | None = None

    def __init__(self, prior: Prior | None = None, em: EM | None = None) -> None:
        self.prior = prior or Prior()
        self.em = em or EM()

    @property
    def fitted(self) -> Fitted:
        """What was read off a log, with all pairs and, of a log in shards, their names in memory.

        What predicts, writes and tells relevance goes through shards one by one without it.
        """
        if self._fitted is None:
            if self._by_part is None:
                raise SettingsError(f"the click model {self.name} has not been fitted")
            self._fitted = self._by_part.joined()
        return self._fitted

    @fitted.setter
    def fitted(self, fitted: Fitted) -> None:
        self._fitted, self._by_part = fitted, None

    @property
    def outline(self) -> Fitted | FittedParts:
        """What all pairs share, and the way there (`shared`, `climb`), whatever the log's size."""
        return self.fitted if self._by_part is None else self._by_part

    @shows_progress("fitting a click model")
    def fit(self, log: ClickLog | Any) -> Self:
        """Read the parameters off a log, which may be a file, a data frame, or in shards.

        Shards are read one after the other; what stays in memory grows with the pairs.
        """
        parts = LogParts.of(log)
        require_countable(parts, "fit a click model on")
        require_skips(parts)
        for part in parts if self.follows else ():
            self._require_whole(part.log.lists)
        found = self._fit_parts(parts)
        if isinstance(found, Fitted) or len(parts) == 1:
            self.fitted = found if isinstance(found, Fitted) else found.joined()
        else:
            self._fitted, self._by_part = None, found
        return self

    def _fit_parts(self, log: LogParts) -> Fitted | FittedParts:
        """What the parts of a log tell; a model with `_fit` alone reads all of it into memory."""
        return self._fit(log.read())

    def _fit(self, log: ClickLog) -> Fitted:
        raise NotImplementedError(f"{type(self).__name__} has neither _fit nor _fit_parts")

    @abstractmethod
    def _browse(self, layout: Layout) -> Pages: ...

    def browse(self, lists: RankedLists, catalogue: Catalogue | None = None) -> Pages:
        """The model's users in front of these lists."""
        return self._lay(self.fitted, lists, catalogue)

    def _lay(self, fitted: Fitted, lists: RankedLists, catalogue: Catalogue | None) -> Pages:
        self._require_whole(lists)
        return self._browse(fitted.lay_out(lists, catalogue))

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
        parts, find = self._beside(log)
        return -float(sum(self._surprise(*find(part)).sum() for part in parts))

    def perplexity(self, log: ClickLog | Any, *, given_clicks: bool = False) -> Perplexity:
        """How well clicks are predicted rank by rank.

        Usually that is before the session begins, from P(c_k = 1); `given_clicks` predicts each
        from those above it, with P(c_k = 1 | c_1 … c_(k−1)).
        """
        parts, find = self._beside(log)
        depth = min(self.outline_depth, parts.depth)
        sessions, surprise = np.zeros(depth), np.zeros(depth)
        for part in parts:
            fitted, clicked = find(part)
            shown = displays(clicked)[:, :depth]
            sessions += shown.sum(axis=0)
            if given_clicks:
                surprise += self._surprise(fitted, clicked)
            else:
                pages = self._lay(fitted, clicked.lists, clicked.catalogue)
                p = np.clip(pages.marginal(), SURE, 1 - SURE)
                clicks = clicked.clicks_per_list[:, :depth]
                surprise -= (clicks * np.log(p) + (shown - clicks) * np.log(1 - p)).sum(axis=0)
        mean = np.divide(surprise, sessions, out=np.full(depth, np.nan), where=sessions > 0)
        return Perplexity(np.exp(mean))

    def log_likelihood_of_rows(
        self, log: ClickLog | LogParts, part: LogPart | None = None
    ) -> Floats:
        """The log probability of the clicks and skips of one session of every row of a log.

        Of a log in parts, those of one of them.
        """
        parts, find = self._beside(log)
        fitted, clicked = find(parts.parts[0] if part is None else part)
        blocks = [-surprise.sum(axis=1) for _, surprise in self._surprises(fitted, clicked)]
        return np.concatenate(blocks) if blocks else np.zeros(0)

    @property
    def outline_depth(self) -> int:
        """How many ranks are known."""
        found = self.outline
        return found.depth if isinstance(found, Fitted) else found.log.depth

    def _beside(
        self, log: ClickLog | Any
    ) -> tuple[LogParts, Callable[[LogPart], tuple[Fitted, ClickLog]]]:
        """The parts of a log, and what finds the parameters and the clicks of each.

        A part of the log that the model was fitted on numbers its documents as the model does. In
        another log they are found by their names: in the shard of the same number, where there are
        as many, or else among all.
        """
        parts, known = LogParts.of(log), self._by_part
        if known is None:
            whole = self.fitted
            alone = len(parts) == 1 and parts.parts[0].sums is None
            return parts, lambda part: (whole, part.log if alone else part.named_log)
        number_of = {part.number: number for number, part in enumerate(known.log)}
        if parts.origin == known.log.origin:
            return parts, lambda part: (known.point(number_of[part.number]), part.log)
        if parts.shards != known.log.shards:
            everything = self.fitted
            return parts, lambda part: (everything, part.named_log)

        def find(part: LogPart) -> tuple[Fitted, ClickLog]:
            number = number_of.get(part.number)
            if number is None:
                return known.point_of_none(), part.named_log
            return known.point(number, named=True), part.named_log

        return parts, find

    def _surprise(self, fitted: Fitted, log: ClickLog) -> Floats:
        """−Σ log P(c_k | c_1 … c_(k−1)) over the sessions, rank by rank."""
        total = np.zeros(min(fitted.depth, log.lists.depth))
        for rows, surprise in self._surprises(fitted, log):
            total += log.counts[rows] @ surprise
        return total

    def _surprises(self, fitted: Fitted, log: ClickLog) -> Iterator[tuple[slice, Floats]]:
        """The same of one session of each row, `[rows, ranks]`, in blocks of rows."""
        pages = self._lay(fitted, log.lists, log.catalogue)
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
        return pa.concat_tables(self.relevance_tables())

    def relevance_tables(self) -> Iterator[pa.Table]:
        """The same in pieces, one for each part of the log, of which one is in memory at a time."""
        if self._by_part is None:
            yield _relevance(self.fitted, self.relevance_of_pairs())
        else:
            for fitted in self._by_part:
                yield _relevance(fitted, self._relevance_of(fitted))

    def relevance_of_pairs(self) -> PairParameter:
        """What the model takes for relevance, by the index of the log."""
        return self._relevance_of(self.fitted)

    def _relevance_of(self, fitted: Fitted) -> PairParameter:
        return fitted.pairs["attraction"]

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
        write_fitted(self.name, self.outline, Path(path))


def _relevance(fitted: Fitted, parameter: PairParameter) -> pa.Table:
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
