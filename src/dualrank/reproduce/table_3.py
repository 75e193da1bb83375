"""The paper's Table 3: dual learning against relevance that click models read off the same log.

A search engine shows BM25's best ten pages, in a few versions as it changes over time; users of
several kinds click; and networks are trained by `dualrank.fit`, as a user would do it, on clicks
(DLA, NoCorrect) or on the relevance of a click model (DBN, UBM, PBM, click-through). A tenth of the
logged queries is held out, and its clicks keep the best ranker. Grades are for testing alone, on
queries that nobody asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dualrank.clicks.models.registry import click_model
from dualrank.clicks.user import User
from dualrank.clicks.users import make_user
from dualrank.corrections.weighting import NoCorrection
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists, top_lists
from dualrank.data.scaling import Scaler
from dualrank.errors import SettingsError
from dualrank.evaluation.evaluator import Evaluator
from dualrank.evaluation.metric import PAPER_METRICS
from dualrank.learning.feedback import Judgments
from dualrank.learning.fit import fit
from dualrank.learning.loop import Progress, Trainer
from dualrank.learning.model import Model
from dualrank.rankers.network import DNN
from dualrank.report.results import PropensityResult, Results, Run
from dualrank.reproduce.comparison_with_dla import compare_with_reference
from dualrank.reproduce.kept_runs import KeptRuns
from dualrank.reproduce.methods import Recipe, describe
from dualrank.reproduce.own_log import OwnData, OwnLog
from dualrank.reproduce.processes import Report
from dualrank.reproduce.runner import run_tasks
from dualrank.reproduce.tasks import Sizes, Trained
from dualrank.reproduce.text_collection import (
    TextCollection,
    TextSplits,
    engine_scores,
)
from dualrank.settings import TrainingSettings
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
HELD_OUT = 0.1
"""The share of logged queries whose clicks keep the best ranker."""
SCALING = "log"
"""Counts and lengths have long tails."""
HEAD, TAIL = 0.1, 0.5
"""The tenth of queries that is asked most, the half that is asked least."""

RECIPE = Recipe(
    TrainingSettings(
        steps=600,
        learning_rate=0.3,
        propensity_rate=1.5,
        weight_decay=1e-3,
        max_weight=10.0,
        validate_every=60,
    ),
    DNN((64, 32)),
)
"""A small network, few steps, some weight decay, and inverse weights clipped at ten.

Small logs need that: with the usual bound of 1,000 a few clicks on pages that the ranker thinks
little of can carry the propensities away, as they did in one run on `msrd-movies`. The rest was
chosen on generated webs of other seeds than those that are reported.
"""


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
    """What all methods of one seed share: queries to learn from, queries to test on, and lists."""

    train: Dataset
    test: Dataset
    lists: RankedLists
    logged: ClickLog | None = None


def stage(splits: TextSplits, seed: int) -> Stage:
    """Let the engine rank the training queries in several versions."""
    rng = np.random.default_rng([seed, 0x_E46])
    scores = engine_scores(splits.train)
    spread = _spread_of_queries(splits.train, scores)
    versions = [
        top_lists(splits.train, scores + rng.normal(0, _CHANGE, len(scores)) * spread, DEPTH)
        for _ in range(VERSIONS)
    ]
    lists = RankedLists(
        np.concatenate([each.documents for each in versions]),
        np.concatenate([each.queries for each in versions]),
    )
    return Stage(splits.train, splits.test, lists)


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
        return Stage(own.train, own.test, own.log.lists, own.log)
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


Scores = Callable[[Dataset], NDArray[np.floating]]


def train_task(task: ClickModelTask, progress: Progress) -> Trained:
    """Train one ranker, and measure it on the test queries."""
    started = time.perf_counter()
    staged = _stage(task.collection, task.seed)
    log = _log(task.collection, task.seed, task.population, task.log)
    score: Scores = engine_scores
    believed = None
    if task.method == "oracle":
        score = _oracle(task.recipe, staged.train, log.lists, progress)
    elif task.method != "initial":
        model = _fit(task.method, task.recipe, staged.train, log, progress)
        score, believed = model.predict, model.propensity
    extra: dict[str, Any] = {"sessions_per_list": task.log.sessions} if task.log.sessions else {}
    if task.log.popularity:
        extra |= _head_and_tail(staged.train, log, score)
    per_query = Evaluator(staged.test, PAPER_METRICS).per_query(score(staged.test))
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


def _fit(method: str, recipe: Recipe, train: Dataset, log: ClickLog, progress: Progress) -> Model:
    """One row of the table, by the same function as for any user's log."""
    extraction: dict[str, Any] = {}
    if method.startswith(CLICK_MODEL):
        name = method.removeprefix(CLICK_MODEL)
        method, extraction = "click-model", {"click_model": name, "min_sessions": 1}
    return fit(
        log,
        train,
        method=method,  # type: ignore[arg-type]
        ranker=recipe.ranker,
        validation=HELD_OUT,
        scaling=SCALING,
        settings=recipe.training,
        progress=progress,
        **extraction,
    )


def _oracle(recipe: Recipe, train: Dataset, lists: RankedLists, progress: Progress) -> Scores:
    """The same network on the grades of the displayed pages; the last one is kept."""
    scaler = Scaler.fit(train.features, kind=SCALING)
    network = recipe.ranker.build(scaler.output_count, recipe.training.seed)
    features = torch.from_numpy(scaler.transform(train.features))
    feedback = Judgments(train, lists)
    Trainer(network, features, feedback, NoCorrection(), recipe.training).run(progress=progress)
    return lambda dataset: network.predict(scaler.transform(dataset.features))


def _head_and_tail(train: Dataset, log: ClickLog, score: Scores) -> dict[str, dict[str, float]]:
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
            for metric, values in Evaluator(part, PAPER_METRICS).per_query(score(part)).items()
        }
        for name, part in parts.items()
    }


def _sizes(staged: Stage) -> Sizes:
    parts = {"train": staged.train, "test": staged.test}
    return Sizes(
        queries={name: len(part) for name, part in parts.items()},
        documents=sum(part.document_count for part in parts.values()),
        features=staged.train.feature_count,
        features_used=int((np.ptp(staged.train.features, axis=0) > 0).sum()),
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
