"""What was read off a log, and how it lies on lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dualrank.clicks.models.counting import Floats, PairTrials, displays, per_pair
from dualrank.clicks.models.em import Climb
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.log_parts import LogPart, LogParts
from dualrank.errors import DataError


@dataclass(frozen=True, eq=False)
class Fitted:
    """Parameters of the pairs, and those that all pairs share.

    `observations` is in how many sessions each pair was displayed, `depth` how many ranks are
    known, `climb` the way there, where it was one.
    """

    pairs: dict[str, PairParameter]
    shared: dict[str, Floats]
    observations: NDArray[np.int64]
    sessions: int
    depth: int
    catalogue: Catalogue | None = None
    climb: Climb = field(default_factory=Climb)

    @classmethod
    def on(
        cls,
        log: ClickLog,
        pairs: dict[str, PairParameter],
        shared: dict[str, Floats] | None = None,
        climb: Climb | None = None,
    ) -> Fitted:
        """What was fitted on this log."""
        return cls(
            pairs,
            shared or {},
            per_pair(log, displays(log)).astype(np.int64),
            log.sessions,
            log.lists.depth,
            log.catalogue,
            climb or Climb(),
        )

    def lay_out(self, lists: RankedLists, catalogue: Catalogue | None) -> Layout:
        """The parameters of the documents on these lists, found by the names in `catalogue`."""
        if lists.depth > self.depth and lists.mask[:, self.depth :].any():
            raise DataError(
                f"the click model knows {self.depth} ranks, and the lists show {lists.depth}"
            )
        shown = lists.documents[:, : self.depth]
        return Layout(self, self._index(catalogue, shown)[shown], shown != PADDING)

    def known_names(self) -> Catalogue:
        """The names of its pairs, and of no more: those of a shard may have further documents."""
        assert self.catalogue is not None
        known = len(self.observations)
        return Catalogue(
            self.catalogue.query_ids,
            self.catalogue.doc_ids[:known],
            self.catalogue.query_of_document[:known],
        )

    def names(self, pairs: NDArray[np.intp]) -> dict[str, pa.Array]:
        """Columns that name some pairs: by query and document, or by their index."""
        if self.catalogue is None:
            return {"document": pa.array(pairs)}
        return _names(self.catalogue, pairs)

    def _index(self, catalogue: Catalogue | None, shown: NDArray[np.int32]) -> NDArray[np.intp]:
        """From the index of the lists to that of the parameters; −1: never seen (or padding)."""
        count = len(self.observations)
        if catalogue is None or self.catalogue is None or catalogue is self.catalogue:
            index = np.arange(max(count, int(shown.max(initial=0)) + 1))
        else:
            found = pc.index_in(_keys(catalogue), value_set=_keys(self.catalogue))
            index = found.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.append(np.where(index < count, index, -1), -1)


@dataclass(frozen=True, eq=False)
class FittedParts:
    """What was read off a log in parts: `values` of the pairs of each part, and what all share.

    `evidence` gives the parameters of the pairs of a part with their intervals, which are made when
    somebody asks for them, one part at a time. `unseen` is what is believed of other pairs.
    """

    log: LogParts
    shared: dict[str, Floats]
    values: Sequence[dict[str, Floats]]
    unseen: dict[str, float]
    evidence: Callable[[int], dict[str, PairParameter]]
    climb: Climb = field(default_factory=Climb)

    def __iter__(self) -> Iterator[Fitted]:
        """Part by part, with the names of its documents."""
        for number, part in enumerate(self.log):
            observations = PairTrials.of(part).trials.astype(np.int64)
            yield self._of(part, self.evidence(number), observations, part.names())

    def point(self, number: int, *, named: bool = False) -> Fitted:
        """The values of one part, without intervals: what predicts clicks needs none."""
        part = self.log.parts[number]
        pairs = {
            name: PairParameter(values, values, values, self.unseen[name])
            for name, values in self.values[number].items()
        }
        size = len(next(iter(pairs.values())).values)
        uncounted = np.broadcast_to(np.int64(0), size)
        return self._of(part, pairs, uncounted, part.names() if named else None)

    def point_of_none(self) -> Fitted:
        """What is believed of documents that were never seen."""
        none = np.zeros(0)
        pairs = {name: PairParameter(none, none, none, v) for name, v in self.unseen.items()}
        nameless = Catalogue(np.zeros(0, object), np.zeros(0, object), np.zeros(0, np.int64))
        no_session = np.zeros(0, np.int64)
        return Fitted(pairs, self.shared, no_session, 0, self.log.depth, nameless, self.climb)

    def joined(self) -> Fitted:
        """All pairs in memory, with their names, as if the log had been in one piece."""
        parts = list(self)
        if len(parts) == 1:
            return parts[0]
        pairs = {
            name: PairParameter(
                np.concatenate([part.pairs[name].values for part in parts]),
                np.concatenate([part.pairs[name].low for part in parts]),
                np.concatenate([part.pairs[name].high for part in parts]),
                unseen,
            )
            for name, unseen in self.unseen.items()
        }
        known = [part.known_names() for part in parts]
        before = np.append(0, np.cumsum([len(each.query_ids) for each in known]))
        catalogue = Catalogue(
            np.concatenate([each.query_ids for each in known]),
            np.concatenate([each.doc_ids for each in known]),
            np.concatenate(
                [each.query_of_document + n for each, n in zip(known, before, strict=False)]
            ),
        )
        return Fitted(
            pairs,
            self.shared,
            np.concatenate([part.observations for part in parts]),
            self.log.sessions,
            self.log.depth,
            catalogue,
            self.climb,
        )

    def _of(
        self,
        part: LogPart,
        pairs: dict[str, PairParameter],
        observations: NDArray[np.int64],
        catalogue: Catalogue | None,
    ) -> Fitted:
        return Fitted(
            pairs,
            self.shared,
            observations,
            part.sessions,
            self.log.depth,
            catalogue,
            self.climb,
        )


@dataclass(frozen=True, eq=False)
class Layout:
    """The parameters of a fitted model, laid out like some lists."""

    fitted: Fitted
    index: NDArray[np.intp]
    mask: NDArray[np.bool_]

    def of_pairs(self, name: str) -> Floats:
        """A parameter of the pairs, 0 at padding."""
        parameter = self.fitted.pairs[name]
        values = np.append(parameter.values, parameter.unseen)
        return np.where(self.mask, values[self.index], 0.0)

    def of_ranks(self, name: str) -> Floats:
        """A parameter of the ranks of these lists."""
        return self.fitted.shared[name][: self.mask.shape[1]]

    def shared(self, name: str) -> float:
        """A parameter that there is once."""
        return float(self.fitted.shared[name][0])


def _names(catalogue: Catalogue, pairs: NDArray[np.intp]) -> dict[str, pa.Array]:
    queries = catalogue.query_ids[catalogue.query_of_document[pairs]]
    return {
        "query_id": pa.array(queries, pa.string()),
        "doc_id": pa.array(catalogue.doc_ids[pairs], pa.string()),
    }


def _keys(catalogue: Catalogue) -> pa.Array:
    names = _names(catalogue, np.arange(len(catalogue.doc_ids)))
    return pc.binary_join_element_wise(names["query_id"], names["doc_id"], "\x00")
