"""The paper's Table 3: dual learning against relevance that click models read off the same log.

A search engine shows BM25's best ten pages, in a few versions as it changes over time; users of
several kinds click; and networks are trained on the clicks (DLA, NoCorrect) or on the relevance of
a click model (DBN, UBM, PBM, click-through), with the same features, labels on the same lists, and
tested on judged queries that nobody asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dualrank.clicks.models.registry import click_model
from dualrank.clicks.user import User
from dualrank.clicks.users import make_user
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists, top_lists
from dualrank.data.scaling import Scaler
from dualrank.errors import SettingsError
from dualrank.evaluation.evaluator import Evaluator
from dualrank.evaluation.metric import PAPER_METRICS
from dualrank.experiments.comparison import compare_with_reference
from dualrank.experiments.kept_runs import KeptRuns
from dualrank.experiments.methods import Recipe, describe
from dualrank.experiments.own_log import OwnData, OwnLog
from dualrank.experiments.parallel import Report
from dualrank.experiments.results import PropensityResult, Results, Run
from dualrank.experiments.runner import run_tasks
from dualrank.experiments.tasks import Sizes, Trained
from dualrank.experiments.text_collection import TextCollection, TextSplits
from dualrank.learning.feedback import EstimatedRelevance, Feedback, Judgments, LoggedClicks
from dualrank.learning.settings import TrainingSettings
from dualrank.learning.trainer import Progress, Trainer
from dualrank.learning.validation import OnGrades
from dualrank.learning.weighting import DualLearning, NoCorrection, Weighting
from dualrank.rankers.network import DNN
from dualrank.version import __version__

CLICK_MODEL = "click-model-"
METHODS = (
    "dla",
    "click-model-dbn",
    "click-model-ubm",
    "naive",
    "click-model-pbm",
    "click-model-document-ctr",
    "initial",
    "oracle",
)
WITHOUT_CLICKS = ("initial", "oracle")
WITHOUT_GRADES = METHODS[:-1]
"""What can be trained on a log whose pages nobody judged."""

POPULATIONS = {"mixed": ("pbm", "ubm", "dbn", "dcm", "pbm-trust")}
"""Users of several kinds, in equal shares."""

SESSIONS = (2, 10, 50, 250)
DEPTH = 10
VERSIONS = 4
"""Lists per query: the engine changes over time, which shows a page at several positions."""
_CHANGE = 0.35
"""The spread of an engine's change, in standard deviations of its scores for a query."""
_POPULARITY = 0.9
"""The n-th most frequent query is asked in proportion to n to the power of minus this."""
HEAD, TAIL = 0.1, 0.5
"""The tenth of queries that is asked most, the half that is asked least."""

RECIPE = Recipe(
    TrainingSettings(steps=2_000, learning_rate=0.1, propensity_rate=0.5, weight_decay=1e-3),
    DNN((64, 32)),
)


@dataclass(frozen=True)
class Log:
    """How many sessions there are per list: the same for all, or as queries are popular."""

    sessions: int = 50
    popularity: bool = False


@dataclass(frozen=True)
class ClickModelTask:
    """One row for one seed and one log."""

    collection: TextCollection | OwnLog
    population: str
    log: Log
    recipe: Recipe
    method: str

    @property
    def seed(self) -> int:
        """The seed of everything random in this task."""
        return self.recipe.training.seed

    def __str__(self) -> str:
        kind = "mean" if self.log.popularity else "each"
        return f"{self.method}, {self.log.sessions} sessions ({kind}), seed {self.seed}"


@dataclass(frozen=True)
class ClickModels:
    """The whole experiment: Table 3 on a log with head and tail, and logs of several sizes."""

    collection: TextCollection | OwnLog = field(default_factory=TextCollection)
    population: str = "mixed"
    recipe: Recipe = RECIPE
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    methods: tuple[str, ...] = METHODS
    table_sessions: int = 50
    sessions: tuple[int, ...] = SESSIONS

    def __post_init__(self) -> None:
        users_of(self.population)
        for name in self.methods:
            if name == "oracle" and isinstance(self.collection, OwnLog):
                raise SettingsError("a log without grades has no oracle; leave it out")
            if name not in ("dla", "naive", *WITHOUT_CLICKS):
                if not name.startswith(CLICK_MODEL):
                    raise SettingsError(f"unknown method {name!r}; known are {', '.join(METHODS)}")
                click_model(name.removeprefix(CLICK_MODEL))
        if not self.seeds:
            raise SettingsError("an experiment needs at least one seed")
        if min((self.table_sessions, *self.sessions)) < 1:
            raise SettingsError("a list has at least one session")

    @property
    def logs(self) -> tuple[Log, ...]:
        """The log of Table 3, and those of each size."""
        if isinstance(self.collection, OwnLog):
            return (Log(0),)
        return (Log(self.table_sessions, popularity=True), *(Log(n) for n in self.sessions))

    @property
    def tasks(self) -> list[ClickModelTask]:
        """One task per seed, log and method; what learns nothing from clicks needs one log only."""
        return [
            ClickModelTask(
                self.collection, self.population, log, self.recipe.with_seed(seed), method
            )
            for seed in self.seeds
            for log in self.logs
            for method in self.methods
            if log == self.logs[0] or method not in WITHOUT_CLICKS
        ]


def users_of(population: str) -> list[User]:
    """The users of a population, or one kind by its name."""
    return [make_user(name) for name in POPULATIONS.get(population, (population,))]


@dataclass(frozen=True, eq=False)
class Stage:
    """What all methods of one seed share; features are scaled."""

    train: Dataset
    valid: Dataset
    test: Dataset
    engine: NDArray[np.float64]
    """How the search engine scores the test documents."""
    lists: RankedLists
    logged: ClickLog | None = None


def stage(splits: TextSplits, seed: int) -> Stage:
    """Scale the features, and let the engine rank the training queries in several versions."""
    rng = np.random.default_rng([seed, 0x_E46])
    scores = TextSplits.engine(splits.train)
    spread = _spread_of_queries(splits.train, scores)
    versions = [
        top_lists(splits.train, scores + rng.normal(0, _CHANGE, len(scores)) * spread, DEPTH)
        for _ in range(VERSIONS)
    ]
    lists = RankedLists(
        np.concatenate([each.documents for each in versions]),
        np.concatenate([each.queries for each in versions]),
    )
    train, valid, test = _scaled(splits.train, splits.valid, splits.test)
    return Stage(train, valid, test, TextSplits.engine(splits.test), lists)


def _scaled(train: Dataset, *others: Dataset) -> tuple[Dataset, ...]:
    """Counts and lengths have long tails, so that features are scaled on a logarithm."""
    scaler = Scaler.fit(train.features, kind="log")
    return tuple(
        replace(part, features=scaler.transform(part.features), feature_names=None)
        for part in (train, *others)
    )


def _spread_of_queries(dataset: Dataset, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard deviation of the scores of each document's query."""
    query = dataset.query_of_document
    mean = np.bincount(query, scores) / dataset.lengths
    squares = np.bincount(query, np.square(scores - mean[query])) / dataset.lengths
    return np.sqrt(squares)[query]


def simulate_log(staged: Stage, users: list[User], log: Log, seed: int) -> ClickLog:
    """Sessions on every list, each of a user of one of the kinds."""
    rng = np.random.default_rng([seed, log.sessions, log.popularity, 0x_C11C])
    grades = staged.lists.gather(staged.train.require_grades())
    counts = _sessions_of_queries(len(staged.train), log, rng)[staged.lists.queries]
    list_of = np.repeat(np.arange(len(counts)), counts)
    kind = rng.integers(len(users), size=len(list_of))
    clicks = np.empty((len(list_of), staged.lists.depth), bool)
    for number, user in enumerate(users):
        pages = user.browse(grades, staged.lists.mask, staged.train.max_grade)
        chosen = kind == number
        clicks[chosen] = pages.take(list_of[chosen]).sample(rng)
    return ClickLog.from_clicks(staged.lists, list_of, clicks, catalogue=staged.train.catalogue)


def _sessions_of_queries(queries: int, log: Log, rng: np.random.Generator) -> NDArray[np.int64]:
    if not log.popularity:
        return np.full(queries, log.sessions)
    share = np.arange(1, queries + 1) ** -_POPULARITY
    wanted = log.sessions * queries * share / share.sum()
    return rng.permutation(np.maximum(np.round(wanted), 1).astype(np.int64))


@lru_cache(maxsize=1)
def _stage(collection: TextCollection | OwnLog, seed: int) -> Stage:
    if isinstance(collection, OwnLog):
        own = _load_own(collection)
        train, valid, test = _scaled(own.train, own.valid, own.test)
        engine = TextSplits.engine(own.test)
        return Stage(train, valid, test, engine, own.log.lists, own.log)
    return stage(_load(collection, seed if collection.new_for_every_seed else 0), seed)


@lru_cache(maxsize=1)
def _load_own(collection: OwnLog) -> OwnData:
    return collection.load()


@lru_cache(maxsize=1)
def _load(collection: TextCollection, seed: int) -> TextSplits:
    return collection.load(seed)


@lru_cache(maxsize=1)
def _log(collection: TextCollection | OwnLog, seed: int, population: str, log: Log) -> ClickLog:
    staged = _stage(collection, seed)
    return staged.logged or simulate_log(staged, users_of(population), log, seed)


def train_task(task: ClickModelTask, progress: Progress) -> Trained:
    """Train one ranker, and measure it on the test queries."""
    started = time.perf_counter()
    staged = _stage(task.collection, task.seed)
    extra: dict[str, Any] = {"sessions_per_list": task.log.sessions} if task.log.sessions else {}
    believed = None
    if task.method == "initial":
        scores = staged.engine
    else:
        log = _log(task.collection, task.seed, task.population, task.log)
        trainer = _trainer(task, staged, log)
        trainer.run(progress=progress)
        scores = trainer.ranker.predict(staged.test.features).astype(np.float64)
        believed = trainer.weighting.propensity()
        if task.log.popularity:
            extra |= _head_and_tail(staged.train, log, trainer.ranker.predict)
    per_query = Evaluator(staged.test, PAPER_METRICS).per_query(scores)
    run = Run(
        method=task.method,
        seed=task.seed,
        metrics={name: float(values.mean()) for name, values in per_query.items()},
        propensity=None
        if believed is None
        else PropensityResult(examination=believed.examination.tolist()),
        seconds=round(time.perf_counter() - started, 2),
        **extra,
    )
    return Trained(run, per_query, _sizes(staged))


def _trainer(task: ClickModelTask, staged: Stage, log: ClickLog) -> Trainer:
    settings = task.recipe.training
    feedback: Feedback
    weighting: Weighting = NoCorrection()
    if task.method == "oracle":
        feedback = Judgments(staged.train, log.lists)
    elif task.method.startswith(CLICK_MODEL):
        fitted = click_model(task.method.removeprefix(CLICK_MODEL)).fit(log)
        feedback = EstimatedRelevance(log, fitted.relevance_of_pairs().values)
    else:
        feedback = LoggedClicks(log)
        if task.method == "dla":
            weighting = DualLearning(log.lists.depth, settings)
    return Trainer(
        task.recipe.ranker.build(staged.train.feature_count, settings.seed),
        torch.from_numpy(staged.train.features),
        feedback,
        weighting,
        settings,
        validation=OnGrades(staged.valid.features, staged.valid, settings.metric),
    )


def _head_and_tail(
    train: Dataset, log: ClickLog, score: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> dict[str, dict[str, float]]:
    """The metrics of logged queries that are asked most and least, on all their candidates."""
    asked = np.bincount(log.lists.queries, log.sessions_per_list, len(train))
    order = np.argsort(-asked, kind="stable")
    parts = {
        "head": train.take(order[: round(HEAD * len(order))]),
        "tail": train.take(order[-round(TAIL * len(order)) :]),
    }
    return {
        name: {
            metric: float(values.mean())
            for metric, values in Evaluator(part, PAPER_METRICS)
            .per_query(score(part.features))
            .items()
        }
        for name, part in parts.items()
    }


def _sizes(staged: Stage) -> Sizes:
    parts = {"train": staged.train, "valid": staged.valid, "test": staged.test}
    return Sizes(
        queries={name: len(part) for name, part in parts.items()},
        documents=sum(part.document_count for part in parts.values()),
        features=33,
        features_used=staged.train.feature_count,
    )


def run_click_models(
    experiment: ClickModels,
    *,
    jobs: int = 1,
    report: Report | None = None,
    finished: Callable[[], None] | None = None,
    kept: KeptRuns | None = None,
) -> tuple[Results, Results | None]:
    """Table 3 with its significance, and, on simulated clicks, the methods by sessions per list."""
    tasks = experiment.tasks
    trained = run_tasks(
        tasks, work=train_task, jobs=jobs, report=report, finished=finished, kept=kept
    )
    pool = experiment.collection.new_for_every_seed
    results = []
    for of_table in (True, False):
        chosen = [
            each
            for task, each in zip(tasks, trained, strict=True)
            if (task.log == experiment.logs[0]) == of_table
        ]
        if chosen:
            results.append(_results(experiment, chosen, pool, of_table))
    return results[0], results[1] if len(results) > 1 else None


def _results(
    experiment: ClickModels, trained: list[Trained], pool: bool, of_table: bool
) -> Results:
    settings = {
        "data": experiment.collection.name,
        "users": experiment.population,
        **trained[0].sizes.model_dump(),
        **describe(experiment.recipe),
        "seeds": list(experiment.seeds),
        "lists_per_query": VERSIONS,
        "version": __version__,
    }
    if isinstance(experiment.collection, OwnLog):
        del settings["users"], settings["lists_per_query"]
    elif of_table:
        settings["sessions_per_list"] = experiment.table_sessions
    by_sessions = sorted({t.run.model_extra["sessions_per_list"] for t in trained if not of_table})  # type: ignore[index]
    significance = (
        compare_with_reference(trained, pool=pool)
        if of_table
        else {
            "by_sessions_per_list": {
                str(n): compare_with_reference(
                    [t for t in trained if (t.run.model_extra or {})["sessions_per_list"] == n],
                    pool=pool,
                )
                for n in by_sessions
            }
        }
    )
    return Results(
        experiment="click-models" if of_table else "click-models-by-sessions",
        settings=settings,
        runs=[each.run for each in trained],
        significance=significance,
    )
