"""The paper's Table 3: dual learning against relevance that click models read off the same log.

A search engine shows BM25's best ten pages, in a few versions as it changes over time; users of
several kinds click; and networks are trained by `dualrank.fit`, as a user would do it, on clicks
(DLA, NoCorrect) or on the relevance of a click model (DBN, UBM, PBM, click-through; of DBN also
attraction alone). A tenth of the logged queries is held out, and its clicks or their relevance keep
the best ranker. Grades are for testing alone, on queries that nobody asked. Queries that are asked
often and rarely are shown apart, and so are logs with equally many sessions on every list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank import report
from dualrank.data import ClickLog, Dataset
from dualrank.errors import SettingsError
from dualrank.learning import Judgments, Progress
from dualrank.pages import Tokeniser, WebSize
from dualrank.report import PropensityResult, Results, Sheet
from dualrank.reproduce.comparison_with_dla import REFERENCE, compare_at_each, compare_with_dla
from dualrank.reproduce.experiment import Experiment, Task, Trained
from dualrank.reproduce.findings import findings
from dualrank.reproduce.own_log import MIN_SESSIONS, OwnLog, extract_own
from dualrank.reproduce.search_engine import (
    OWN,
    VERSIONS,
    Log,
    SearchData,
    display,
    simulate_log,
    users_of,
)
from dualrank.reproduce.table_2_rows import Hyperparameters
from dualrank.reproduce.text_collection import TextCollection, TextSplits, engine_scores

CLICK_MODEL = "click-model-"
METHODS = (
    "dla",
    "click-model-dbn",
    "click-model-dbn:attraction",
    "click-model-ubm",
    "naive",
    "click-model-pbm",
    "click-model-document-ctr",
    "initial",
    "oracle",
)
WITHOUT_CLICKS = ("initial", "oracle")

SESSIONS = (2, 10, 50, 250)
SWEPT = "sessions_per_list"
HELD_OUT = 0.1
"""The share of logged queries whose clicks keep the best ranker."""
SCALING = "log"
"""Counts and lengths have long tails."""
HEAD, TAIL = 0.1, 0.5
"""The tenth of queries that is asked most, the half that is asked least."""
HEAD_AND_TAIL_METRICS = ("map", "ndcg@10", "err@10")
SWEPT_METRICS = ("ndcg@10", "err@10")

STEPS = 600
HYPERPARAMETERS = Hyperparameters(
    dr.TrainingSettings(
        steps=STEPS,
        learning_rate=0.3,
        propensity_rate=1.5,
        weight_decay=1e-3,
        max_weight=10.0,
        validate_every=60,
    ),
    dr.DNN((64, 32)),
)
"""A small network, few steps, some weight decay, and inverse weights clipped at ten.

Small logs need that: with the usual bound of 1,000 a few clicks on pages that the ranker thinks
little of can carry the propensities away, as they did in one run on `msrd-movies`. The rest was
chosen on generated webs of other seeds than those that are reported.
"""
_HEAD_AND_TAIL = (
    "On the logged queries themselves: head is the tenth that is asked most, tail the half that "
    "is asked least. Only the oracle saw their grades."
)
_SIMULATED = (
    "The clicks were simulated, by users of the kind {} on lists of BM25. Which method comes first "
    "depends on how users behave, how often lists are repeated and how much the features know of "
    "relevance: judge a ranker learned from your log on your own judged queries or in an online "
    "test before you rely on it."
)


@dataclass(frozen=True, kw_only=True)
class ClickModels(Experiment):
    """The paper's Table 3: dual learning against click models, from web pages and a click log.

    Without own data, on a generated web with simulated users of several kinds; with --pages,
    --queries, --log and --judgments on yours. Simulated logs have queries that are asked often and
    rarely, reported apart; further logs have equally many --sessions on every list, to show how
    many of them click models need.

    Example: dualrank reproduce click-models --seeds 5

    Example: dualrank reproduce click-models --pages crawl/ --queries queries.tsv
    --log clicks.parquet --judgments judgments.tsv
    """

    name = "click-models"
    title = "Dual learning and click models"

    data: Annotated[str, "small-web (generated), msrd-movies, nfcorpus or stanford-web."] = (
        "small-web"
    )
    root: Annotated[
        Path | None, "The folder above the public collections.", {"envvar": "DUALRANK_DATA"}
    ] = None
    pages: Annotated[Path | None, "Your own pages."] = None
    queries: Annotated[Path | None, "Your own queries."] = None
    log: Annotated[Path | None, "Your own click log."] = None
    judgments: Annotated[
        Path | None, "Grades of pages for some queries: query_id, doc_id, grade."
    ] = None
    stemmer: Annotated[
        str | None, "Cut words to their stems, such as english, german, russian."
    ] = None
    stop_words: Annotated[bool, "Leave English stop words out."] = False
    chinese: Annotated[bool, "Cut Chinese into words (extra dualrank\\[chinese])."] = False
    min_sessions: Annotated[int, "Leave out lists of your log with fewer sessions.", {"min": 1}] = (
        MIN_SESSIONS
    )
    user: Annotated[str, "Who clicks: mixed, or pbm, ubm, dbn, dcm, cascade, pbm-trust, …"] = (
        "mixed"
    )
    table_sessions: Annotated[
        int, "Sessions per list in the log of Table 3, on average.", {"min": 1}
    ] = 50
    sessions: Annotated[
        tuple[int, ...], "Sessions per list of further logs, separated by commas; or none."
    ] = field(default=SESSIONS, repr=False)
    methods: Annotated[tuple[str, ...] | None, "Only these rows, separated by commas.", ","] = (
        field(default=None, repr=False)
    )
    steps: Annotated[int, "Training steps.", {"min": 1}] = STEPS
    size: WebSize = field(default_factory=WebSize)
    """How large the generated web is."""
    own: OwnLog | None = None
    """The own data, once `prepared` has read the pages."""

    def __post_init__(self) -> None:
        super().__post_init__()
        missing = [name for name, path in self._own.items() if path is None]
        if 0 < len(missing) < len(self._own):
            given = ", ".join(f"{name}=PATH" for name in missing)
            raise SettingsError(
                f"own data are pages, queries, log and judgments; give also {given}"
            )
        users_of(self.user)
        for name in self.rows:
            if name == "oracle" and self.is_own:
                raise SettingsError("a log without grades has no oracle; leave it out")
            if name.startswith(CLICK_MODEL):
                dr.Plan(method="click-model", click_model=name.removeprefix(CLICK_MODEL))
            elif name not in METHODS:
                raise SettingsError(f"unknown method {name!r}; known are {', '.join(METHODS)}")
        if min((self.table_sessions, *self.sessions)) < 1:
            raise SettingsError("a list has at least one session")
        if not self.is_own:
            _ = self.collection  # built now, so that an unknown one is refused

    @property
    def _own(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("pages", "queries", "log", "judgments")}

    @property
    def is_own(self) -> bool:
        """Whether the data are the user's own."""
        return self.pages is not None

    @property
    def rows(self) -> tuple[str, ...]:
        """The methods; nobody judged the pages of an own log that are learned from."""
        return self.methods or (METHODS[:-1] if self.is_own else METHODS)

    @cached_property
    def collection(self) -> TextCollection | OwnLog:
        """What is learned from and tested on."""
        if self.own is not None:
            return self.own
        return TextCollection(self.data, None if self.data == "small-web" else self.root, self.size)

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Those of this experiment, with the steps that are asked for."""
        return HYPERPARAMETERS.with_training(steps=self.steps)

    @property
    def logs(self) -> tuple[Log, ...]:
        """The log of Table 3, and those of each size."""
        if self.is_own:
            return (OWN,)
        return (Log(self.table_sessions, popularity=True), *(Log(n) for n in self.sessions))

    def prepared(self, out: Path, progress: Progress) -> ClickModels:
        """With the features of the own pages, which are read once."""
        if self.log is None or self.judgments is None or self.own is not None:
            return self
        tokeniser = Tokeniser(self.stemmer, self.stop_words, self.chinese)
        found = extract_own(**self._own, tokeniser=tokeniser, progress=progress)
        found.warn()
        features = out / "features.parquet"
        found.write(features)
        return replace(self, own=OwnLog.of(features, self.log, self.judgments, self.min_sessions))

    def tasks(self) -> list[Task]:
        """One per seed, log and method; what learns nothing from clicks needs one log only."""
        return [
            Task(self, name, seed, {"log": log})
            for seed in self.all_seeds
            for log in self.logs
            for name in self.rows
            if log == self.logs[0] or name not in WITHOUT_CLICKS
        ]

    def work(self, task: Task, progress: Progress) -> list[Trained]:
        """Train one ranker, and measure it on the test queries."""
        started = time.perf_counter()
        kind: Log = task.setting["log"]
        seed = 0 if self.is_own else task.seed
        data, log = _data(self.collection, seed), _log(self.collection, seed, self.user, kind)
        score: Scores = engine_scores
        propensity = None
        if task.method != "initial":
            chosen = self.hyperparameters.with_training(seed=task.seed)
            model = _fit(task.method, chosen, data.train, log, progress)
            score = model.predict
            if model.propensity is not None:
                propensity = PropensityResult(examination=model.propensity.examination.tolist())
        further: dict[str, Any] = {} if kind == OWN else {SWEPT: kind.sessions}
        if kind.popularity:
            further |= _head_and_tail(data.train, log, score)
        return [
            Trained.of(
                task.method,
                task.seed,
                dr.evaluate_per_query(score(data.test), data.test),
                seconds=time.perf_counter() - started,
                sizes=data.sizes,
                propensity=propensity,
                **further,
            )
        ]

    def settings(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """The data, the training and the users."""
        simulated = {"users": self.user, "lists_per_query": VERSIONS}
        return {
            "data": self.collection.name,
            **super().settings(trained),
            **self.hyperparameters.describe(),
            **({} if self.is_own else simulated),
        }

    def results(self, trained: Sequence[Trained]) -> dict[str, Results]:
        """Table 3 and, on simulated clicks, the methods by sessions per list."""
        pool, settings = self.collection.new_for_every_seed, self.settings(trained)
        table = [
            each for each in trained if self.is_own or report.extra(each.run, "head") is not None
        ]
        further = [each for each in trained if each not in table]
        results = {
            "results": Results(
                experiment=self.name,
                settings=settings if self.is_own else {**settings, SWEPT: self.table_sessions},
                runs=[each.run for each in table],
                significance=compare_with_dla(table, pool=pool),
            )
        }
        if further:
            numbers = sorted(set(self.sessions))
            results["by-sessions"] = Results(
                experiment=f"{self.name}-by-sessions",
                settings=settings,
                runs=[each.run for each in further],
                significance={f"by_{SWEPT}": compare_at_each(further, SWEPT, numbers, pool=pool)},
            )
        return results

    def sheet(self, results: dict[str, Results]) -> Sheet:
        """Table 3, queries asked most and least, and who is ahead from how many sessions on."""
        found, further = results["results"], results.get("by-sessions")
        sections = []
        if (parts := head_and_tail_table(found)) is not None:
            sections.append(
                report.Section(
                    "Head and tail", _HEAD_AND_TAIL, table=parts, file="head-and-tail.md"
                )
            )
        if further is not None:
            text = "nDCG@10 where every list has equally many sessions."
            sections.append(
                report.Section(
                    "By sessions per list",
                    " ".join([text, *crossings(further)]),
                    table=sessions_table(further),
                    file="by-sessions.md",
                    exhibits=tuple(
                        report.sweep_exhibit(further, SWEPT, metric, "sessions")
                        for metric in SWEPT_METRICS
                    ),
                )
            )
        return report.results_sheet(
            found,
            self.title,
            verdict=findings(found),
            sections=sections,
            caveat=report.UNPROVEN if self.is_own else _SIMULATED.format(self.user),
        )


@lru_cache(maxsize=1)
def _data(collection: TextCollection | OwnLog, seed: int) -> SearchData:
    if isinstance(collection, OwnLog):
        return collection.load()
    return display(_load(collection, seed if collection.new_for_every_seed else 0), seed)


@lru_cache(maxsize=1)
def _load(collection: TextCollection, seed: int) -> TextSplits:
    return collection.load(seed)


@lru_cache(maxsize=1)
def _log(collection: TextCollection | OwnLog, seed: int, population: str, log: Log) -> ClickLog:
    data = _data(collection, seed)
    return data.log or simulate_log(data, users_of(population), log, seed)


Scores = Callable[[Dataset], NDArray[np.floating]]


def _fit(
    name: str, chosen: Hyperparameters, train: Dataset, log: ClickLog, progress: Progress
) -> dr.Model:
    """One row of the table, by the same function as for any user's log."""
    common: dict[str, Any] = {
        "ranker": chosen.ranker,
        "scaling": SCALING,
        "settings": chosen.training,
        "progress": progress,
    }
    if name == "oracle":
        # The grades of the displayed pages; the last network is kept.
        return dr.fit(Judgments(train, log.lists), train, method="naive", validation=0, **common)
    if name.startswith(CLICK_MODEL):
        common |= {"click_model": name.removeprefix(CLICK_MODEL), "min_sessions": 1}
        name = "click-model"
    return dr.fit(log, train, method=name, validation=HELD_OUT, **common)


def _head_and_tail(train: Dataset, log: ClickLog, score: Scores) -> dict[str, dict[str, float]]:
    """The metrics of logged queries that are asked most and least, on all their candidates."""
    asked = np.bincount(log.lists.queries, log.sessions_per_list, len(train))
    order = np.argsort(-asked, kind="stable")
    parts = {
        "head": train.take(order[: round(HEAD * len(order))]),
        "tail": train.take(order[-round(TAIL * len(order)) :]),
    }
    return {name: dr.evaluate(score(part), part) for name, part in parts.items()}


def head_and_tail_table(
    results: Results, metrics: Sequence[str] = HEAD_AND_TAIL_METRICS
) -> report.Table | None:
    """Some metrics on either kind of queries; None where they were not measured apart."""
    rows = []
    for name in report.ordered_methods(results):
        found = [run.model_extra or {} for run in results.of(name)]
        known = [each for each in found if {"head", "tail"} <= each.keys()]
        if known:
            cells = [
                report.Cell.of([each[part][metric] for each in known])
                for part in ("head", "tail")
                for metric in metrics
            ]
            rows.append(report.method_row(name, cells))
    if not rows:
        return None
    columns = [f"{part} {report.metric_label(m)}" for part in ("Head", "Tail") for m in metrics]
    return report.Table(tuple(columns), report.with_best(rows), corner="Method")


def sessions_table(results: Results, metric: str = "ndcg@10") -> report.Table:
    """One metric, a row per method and a column per number of sessions, each tested by itself."""
    tests: dict[str, Any] = results.significance.get(f"by_{SWEPT}", {})
    numbers = _numbers(results)
    rows = []
    for name in report.ordered_methods(results):
        marks = {n: report.significance_mark(tests.get(str(n), {}), name, metric) for n in numbers}
        cells = [report.Cell.of(_values(results, name, n, metric), marks[n]) for n in numbers]
        rows.append(report.method_row(name, cells))
    columns = tuple(f"{number} sessions" for number in numbers)
    test = report.tested_by(next(iter(tests.values()), {}))
    return report.Table(columns, report.with_best(rows), corner="Method", **test)


def crossings(results: Results, metric: str = "ndcg@10") -> list[str]:
    """For every method, in one sentence, where it is above dual learning by its means."""
    numbers, names = _numbers(results), report.ordered_methods(results)
    if REFERENCE not in names:
        return []

    def means(name: str) -> NDArray[np.float64]:
        return np.array([np.mean(_values(results, name, n, metric)) for n in numbers])

    sentences = []
    for name in names:
        above = means(name) > means(REFERENCE)
        where = "at every number of sessions per list."
        if above.any() and not above.all():
            some = [
                str(number) for number, is_above in zip(numbers, above, strict=True) if is_above
            ]
            where = f"at {', '.join(some)} sessions per list, else below."
        if name != REFERENCE:
            side = "above" if above.any() else "below"
            sentences.append(f"{report.method(name).label} is {side} DLA {where}")
    return sentences


def _numbers(results: Results) -> list[int]:
    found = {report.extra(run, SWEPT) for run in results.runs}
    return sorted(number for number in found if isinstance(number, int))


def _values(results: Results, name: str, number: int, metric: str) -> list[float]:
    return [run.metrics[metric] for run in results.of(name) if report.extra(run, SWEPT) == number]
