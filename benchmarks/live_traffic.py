"""Simulated users of a live ranker: what the experiments on learning while users click share.

A `Site` has queries with documents, and users who are shown the top of the live version's ranking.
Their sessions are written as closed segments of the store of events, which a learner follows. The
held-out queries of the learner are shown and clicked as all others are; quality is measured by
judgements on all queries that are shown, and on test queries that nobody ever asks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import dualrank as dr
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.data.dataset import Dataset
from dualrank.data.generator import Preset, with_document_ids
from dualrank.data.lists import RankedLists
from dualrank.storage import atomic_file

DEPTH = 10
METRIC = f"ndcg@{DEPTH}"


class Folder:
    """Closed segments in a folder of events, written directly."""

    def __init__(self, events: Path) -> None:
        self._clicks = events / "clicks"
        self._clicks.mkdir(parents=True, exist_ok=True)

    def closed(self) -> list[int]:
        """The numbers of all."""
        return sorted(int(each.stem) for each in self._clicks.glob("*.parquet"))

    def clicks(self, number: int) -> Path:
        """The click log of one."""
        return self._clicks / f"{number:06}.parquet"

    def features(self, number: int) -> Path | None:
        """The features come from a table."""
        return None

    def write(self, table: pa.Table) -> int:
        """Close one more."""
        number = max(self.closed(), default=0) + 1
        with atomic_file(self.clicks(number), durable=False) as file:
            pq.write_table(table, file, compression="zstd")
        return number


@dataclass(frozen=True, eq=False)
class Site:
    """Queries that are asked, and test queries."""

    data: Dataset
    test: Dataset

    @classmethod
    def of(cls, queries: int, seed: int, features: int = 32, world: int = 3) -> Site:
        """Generated ones."""
        made = dr.generate_splits(Preset(features, queries, 10, 1_000), seed=seed, world=world)
        return cls(with_document_ids(made.train), made.test)

    def first_model(self, seed: int, *, method: str = "dla", eta: float = 0.5) -> dr.Model:
        """What a team starts with: trained on a small log of an initial ranker's lists."""
        from dualrank.reproduce.simulation import rank_initially

        lists = rank_initially(self.data, seed)
        user = PositionBasedUser(eta=eta)
        log = dr.sample_log(self.data, lists, user, 20_000, seed=seed)
        ranker = dr.DNN((64, 32))
        return dr.fit(
            log, self.data, method=method, ranker=ranker, steps=600, validation=0, seed=seed
        )

    def lists(self, model: dr.Model) -> RankedLists:
        """What is displayed of every query."""
        return dr.top_lists(self.data, model.predict(self.data), DEPTH)

    def quality(self, scores: NDArray[np.floating]) -> float:
        """nDCG@10 of what is shown."""
        return float(dr.evaluate(scores, self.data, [METRIC])[METRIC])

    def test_quality(self, model: dr.Model) -> float:
        """nDCG@10 on test queries."""
        return float(dr.evaluate(model.predict(self.test), self.test, [METRIC])[METRIC])

    def sessions(
        self,
        lists: RankedLists,
        user: PositionBasedUser,
        count: int,
        rng: np.random.Generator,
        explore: float = 0.0,
    ) -> pa.Table:
        """Sessions as a segment holds them; a share `explore` has one result swapped to the top."""
        data = self.data
        chosen = rng.integers(len(lists), size=count)
        shown = lists.documents[chosen]
        if explore:
            lengths = (shown >= 0).sum(axis=1)
            swapped = np.flatnonzero((rng.random(count) < explore) & (lengths > 1))
            place = 1 + (rng.random(len(swapped)) * (lengths[swapped] - 1)).astype(int)
            first = shown[swapped, 0].copy()
            shown[swapped, 0] = shown[swapped, place]
            shown[swapped, place] = first
        grades = np.where(shown >= 0, data.require_grades()[shown], 0)
        clicks = user.browse(grades, shown >= 0, data.max_grade).sample(rng)
        session, position = np.nonzero(shown >= 0)
        document = shown[session, position]
        return pa.table(
            {
                "session_id": rng.integers(1 << 62) + session,
                "query_id": _coded(data.query_ids, lists.queries[chosen][session]),
                "doc_id": _coded(data.ids_of_documents(), document),
                "position": (position + 1).astype(np.int32),
                "clicked": clicks[session, position],
                "timestamp": np.full(len(session), time.time()),
            }
        )


def _coded(names: NDArray[np.str_], codes: NDArray[np.integer]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(names.astype(object)))
