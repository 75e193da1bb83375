"""Who ranked what was logged: rankers that know no label, few of them, or all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.data import Dataset, RankedLists, join_lists, top_lists
from dualrank.learning import Judgments
from dualrank.reproduce.simulation import Simulation, train_initial_ranker

Logger = Literal["random", "initial", "other initial", "linear", "network", "three networks"]
RANKER = dr.DNN((64, 32))
STEPS_OF_LOGGERS = 1_500

Scores = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Logged:
    """The scores of a logging ranker: of training documents, and of test documents if it has any.

    Luck has no opinion on test documents.
    """

    train: Scores
    test: Scores | None


def logging_lists(kind: Logger, simulation: Simulation, seed: int, depth: int = 10) -> RankedLists:
    """What the logging ranker displayed for the training queries."""
    return lists_of(simulation.train, logging_scores(kind, simulation, seed), depth)


def lists_of(train: Dataset, rankers: Sequence[Logged], depth: int) -> RankedLists:
    """The lists of rankers that ranked in turn, each different list once."""
    lists = [top_lists(train, ranker.train, depth) for ranker in rankers]
    return lists[0] if len(lists) == 1 else join_lists(lists)


def logging_scores(kind: Logger, simulation: Simulation, seed: int) -> list[Logged]:
    """The scores of the logging ranker, or of several that ranked in turn."""
    train, test = simulation.train, simulation.test
    if kind == "random":
        luck = np.random.default_rng([seed, 0x_10C]).random(train.document_count)
        return [Logged(luck, None)]
    if kind == "initial":
        initial = simulation.initial
        return [Logged(initial.score(train.features), initial.score(test.features))]
    if kind == "other initial":
        initial = train_initial_ranker(train, seed + 1_000)
        return [Logged(initial.score(train.features), initial.score(test.features))]
    if kind == "linear":
        return [_taught_by_grades(train, test, dr.Linear(), seed)]
    seeds = [seed] if kind == "network" else [seed, seed + 1_000, seed + 2_000]
    return [_taught_by_grades(train, test, RANKER, each) for each in seeds]


def _taught_by_grades(
    train: Dataset, test: Dataset, ranker: dr.DNN | dr.Linear, seed: int
) -> Logged:
    """A ranker that knows every label."""
    everything = top_lists(train, np.zeros(train.document_count), int(train.lengths.max()))
    model = dr.fit(
        Judgments(train, everything),
        train,
        method="naive",
        ranker=ranker,
        validation=0,
        scaling="none",
        settings=dr.TrainingSettings(steps=STEPS_OF_LOGGERS, seed=seed),
    )
    return Logged(model.predict(train), model.predict(test))


def mean_of(rankers: Sequence[Logged]) -> Scores | None:
    """One ranking of the test documents for rankers that ranked in turn, each with equal weight."""
    scores = [ranker.test for ranker in rankers if ranker.test is not None]
    if len(scores) < len(rankers):
        return None
    if len(scores) == 1:
        return scores[0]
    mean: Scores = np.mean([(each - each.mean()) / each.std() for each in scores], axis=0)
    return mean
