"""What simulation experiments share: scaled data, an initial ranker and its lists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any

import numpy as np

import dualrank as dr
from dualrank.data import Dataset, PresetName, RankedLists, Scaler, Splits, join_lists, top_lists
from dualrank.errors import DataError
from dualrank.rankers import SVMSolution
from dualrank.reproduce.collection import Collection, sizes_of
from dualrank.reproduce.experiment import Experiment, Trained

DEPTH = 10
INITIAL_C = 10.0
INITIAL_SHARE = 0.01
INITIAL_QUERIES_AT_LEAST = 10


@dataclass(frozen=True, eq=False)
class Simulation:
    """Everything that all methods of one seed share. Features are scaled already."""

    train: Dataset
    valid: Dataset
    test: Dataset
    initial: SVMSolution
    lists: RankedLists
    features_given: int
    note: str = ""

    @property
    def sizes(self) -> dict[str, Any]:
        """How large the data are. Features that are constant in training are not used."""
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        return sizes_of(
            parts,
            features=self.features_given,
            features_used=self.train.feature_count,
            note=self.note,
        )


@dataclass(frozen=True, kw_only=True)
class SimulationExperiment(Experiment):
    """An experiment on generated data of some size."""

    preset: Annotated[PresetName, "How large the experiment is."] = "laptop"
    world: Annotated[int, "The seed of the generated world.", {"min": 0}] = 0

    @cached_property
    def collection(self) -> Collection:
        """Generated data."""
        return Collection(self.preset, world=self.world)

    def settings(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """The data and the seeds."""
        data = self.collection.describe(self.all_seeds)
        return {"data": data, **super().settings(trained)}


@lru_cache(maxsize=1)
def simulation_of(collection: Collection, seed: int) -> Simulation:
    """Made once per process and seed, for all methods and users."""
    return simulate(collection.load(seed), seed, scaling=collection.scaling)


def simulate(
    splits: Splits, seed: int, *, depth: int = DEPTH, scaling: str = "standard"
) -> Simulation:
    """Scale the features, train the initial ranker and let it rank the training queries."""
    counts = {d.feature_count for d in (splits.train, splits.valid, splits.test)}
    if len(counts) > 1:
        raise DataError(
            "training, validation and test data have different numbers of features: "
            + ", ".join(map(str, sorted(counts)))
        )
    scaler = Scaler.fit(splits.train.features, kind=scaling)
    train, valid, test = (
        replace(part, features=scaler.transform(part.features), feature_names=None)
        for part in (splits.train, splits.valid, splits.test)
    )
    initial = train_initial_ranker(train, seed)
    lists = top_lists(train, initial.score(train.features), depth)
    return Simulation(train, valid, test, initial, lists, splits.train.feature_count, splits.note)


def rank_initially(
    dataset: Dataset, seed: int, *, depth: int = DEPTH, rankings: int = 1
) -> RankedLists:
    """The lists that an initial ranker, trained on a few of these queries, displays for all.

    With several `rankings`, each query has as many lists (or fewer, where some are equal): those
    after the first rank by scores with noise of half their standard deviation, as a production
    ranker that changes from day to day.
    """
    scaler = Scaler.fit(dataset.features, kind="standard")
    scaled = replace(dataset, features=scaler.transform(dataset.features), feature_names=None)
    scores = train_initial_ranker(scaled, seed).score(scaled.features)
    lists = [top_lists(scaled, scores, depth)]
    rng = np.random.default_rng([seed, 0x_4A2])
    for _ in range(rankings - 1):
        noise = rng.normal(0, scores.std() / 2, len(scores))
        lists.append(top_lists(scaled, scores + noise, depth))
    return lists[0] if rankings == 1 else join_lists(lists)


def train_initial_ranker(train: Dataset, seed: int) -> SVMSolution:
    """The paper's initial ranker: a Ranking SVM on the grades of 1% of the training queries.

    On small collections 1% would be a handful of queries, so at least ten are used; queries whose
    documents all have the same grade teach nothing and are not drawn.
    """
    grades = train.require_grades()
    low = np.minimum.reduceat(grades, train.offsets[:-1])
    high = np.maximum.reduceat(grades, train.offsets[:-1])
    useful = np.flatnonzero(high > low)
    if len(useful) == 0:
        raise DataError("no training query has documents of different grades to learn from")
    wanted = max(math.ceil(INITIAL_SHARE * len(train)), INITIAL_QUERIES_AT_LEAST)
    rng = np.random.default_rng([seed, 0x_1417])
    chosen = rng.choice(useful, min(wanted, len(useful)), replace=False)
    return dr.RankingSVM(C=INITIAL_C, seed=seed).fit_grades(train.take(np.sort(chosen)))
