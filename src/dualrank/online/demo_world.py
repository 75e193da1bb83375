"""The demo's small world: generated queries, and a first model that has seen little of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.generator import World, with_document_ids
from dualrank.data.lists import top_lists
from dualrank.learning.fit import fit
from dualrank.learning.model import Model
from dualrank.rankers.network import DNN
from dualrank.storage import write_table

QUERIES = 1_500
FEATURES = 24
DEPTH = 10
FIRST_SESSIONS = 1_000
"""What the first model was trained on: as many as a new service has on its first evening."""
HIDDEN = (32,)


@dataclass(frozen=True)
class DemoWorld:
    """Queries with documents of known relevance; the same seed gives the same one everywhere.

    Users know the relevance, the service knows the features, and neither knows the other's.
    """

    dataset: Dataset
    seed: int

    @classmethod
    def of(cls, seed: int, queries: int = QUERIES) -> DemoWorld:
        """The world of a seed."""
        return cls(with_document_ids(World(FEATURES, seed).generate(queries, seed)), seed)

    def write_features(self, path: Path) -> None:
        """Write what the service knows: features, and no grades."""
        data = self.dataset
        table = pa.table(
            {
                "query_id": np.repeat(data.query_ids, data.lengths),
                "doc_id": data.ids_of_documents(),
                "features": list(data.features),
            }
        )
        write_table(path, table, "features")

    def first_model(self, user: PositionBasedUser) -> Model:
        """A model of the first sessions, in which documents stood in no order."""
        data = self.dataset
        rng = np.random.default_rng([self.seed, 0x_F1])
        lists = top_lists(data, rng.random(data.document_count), DEPTH)
        log = sample_log(data, lists, user, FIRST_SESSIONS, rng)
        # No grades: what is trained must not be able to look at them.
        unjudged = data.with_grades(None)
        ranker = DNN(hidden=HIDDEN)
        return fit(
            log, unjudged, method="dla", ranker=ranker, validation=0.0, steps=200, seed=self.seed
        )
