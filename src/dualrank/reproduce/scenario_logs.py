"""Logs of several rankers and several users, on which corrections can be right and wrong.

The paper's simulation has one logging ranker, a weak one, and users who keep to the position-based
assumption. Each scenario changes one thing: who ranked, who clicked, what the learner sees of the
documents and of the sessions, and how much of it.

- *Private features*: the logging ranker sees only what the learner does not. Where a document stood
  then says something about its relevance that no ranker of the learner can.
- *Devices*: examination differs by device, and so may the ranker. With one ranker the mean click
  still factorises into position and relevance; with one for each it does so by device only, which a
  log without that column cannot tell.
- *Clickbait*: a feature that says nothing about grades attracts clicks, and the ranker likes it.
  What is clicked because of it looks relevant to any correction for position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.clicks import (
    EYE_TRACKING,
    CascadeUser,
    PositionBasedUser,
    TrustingUser,
    User,
    make_user,
)
from dualrank.data import ClickLog, Column, Dataset, RankedLists, shuffle_lists
from dualrank.propensity import Propensity
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.scenario_rankers import (
    Logged,
    Logger,
    Scores,
    lists_of,
    logging_scores,
    mean_of,
)
from dualrank.reproduce.search_engine import users_of
from dualrank.reproduce.simulation import DEPTH, Simulation, simulation_of

COPIES_SHUFFLED = 20
QUERIES = 8_000
BAITED = 0.2
"""The share of documents that are clickbait."""
TWENTY = (*EYE_TRACKING, *(0.6 / k for k in range(11, 21)))
"""Examination of twenty positions: below the tenth, which has 0.6/10, it falls on as 0.6/k."""


@dataclass(frozen=True)
class Crowd:
    """Sessions of one kind: who ranked for them, and who clicks."""

    name: str
    user: User
    logger: Logger = "initial"


@dataclass(frozen=True)
class Scenario:
    """Who ranked what was logged, who clicked, what the learner sees, and how much of it.

    `sessions` are those on generated data; public collections have as many per query as 8,000
    queries would. `features` is the share of features that the learner sees; with `private`, the
    logging ranker sees the others. `zipf`: the n-th query is asked in proportion to 1/n. `bait` is
    how likely clickbait looks relevant that is not. `crowds` stand in the place of logger and user,
    and have equal shares of the sessions; `context` is the column of the log that tells them apart.
    """

    title: str
    logger: Logger = "initial"
    user: User = field(default_factory=PositionBasedUser)
    features: float = 1.0
    sessions: int = 1_000_000
    private: bool = False
    depth: int = DEPTH
    zipf: bool = False
    bait: float = 0.0
    crowds: tuple[Crowd, ...] = ()
    context: str | None = None

    @property
    def parts(self) -> tuple[Crowd, ...]:
        """The crowds, or the only one."""
        return self.crowds or (Crowd("all", self.user, self.logger),)


DESKTOP = Crowd("desktop", PositionBasedUser(eta=0.5))
PHONE = Crowd("phone", PositionBasedUser(eta=2.0))
DEVICES = (DESKTOP, replace(PHONE, logger="other initial"))

SCENARIOS = {
    "random-logger": Scenario("random logger", logger="random"),
    "initial-ranker": Scenario("initial ranker, on 1% of the labels"),
    "linear-logger": Scenario("linear ranker on all labels", logger="linear"),
    "network-logger": Scenario("DNN on all labels", logger="network"),
    "hidden-features": Scenario("half of the features hidden", features=0.5),
    "trust-bias": Scenario("trust bias", user=TrustingUser()),
    "cascade": Scenario("cascade clicks", user=CascadeUser()),
    "few-sessions": Scenario("1,000 sessions only", sessions=1_000),
    "10k-sessions": Scenario("10,000 sessions only", sessions=10_000),
    "100k-sessions": Scenario("100,000 sessions only", sessions=100_000),
    "three-networks": Scenario("three DNNs on all labels in turn", logger="three networks"),
    "dbn": Scenario("DBN users", user=make_user("dbn")),
    "mixed-users": Scenario(
        "a mixture of users", crowds=tuple(Crowd(str(user), user) for user in users_of("mixed"))
    ),
    "severe-bias": Scenario("severe bias, η = 2", user=PositionBasedUser(eta=2)),
    "click-noise": Scenario("click noise 0.4", user=PositionBasedUser(epsilon=0.4)),
    "private-features": Scenario(
        "private features of the logger", logger="linear", features=0.5, private=True
    ),
    "devices": Scenario("two devices, a ranker for each", crowds=DEVICES, context="device"),
    "devices-unlogged": Scenario("the same, device not logged", crowds=DEVICES),
    "devices-one-ranker": Scenario(
        "two devices, one ranker", crowds=(DESKTOP, PHONE), context="device"
    ),
    "zipf-queries": Scenario("Zipf-distributed queries", zipf=True),
    "clickbait": Scenario("clickbait", bait=0.1),
    "lists-of-5": Scenario("lists of 5", depth=5),
    "lists-of-20": Scenario("lists of 20", depth=20, user=PositionBasedUser(curve=TWENTY)),
}


@dataclass(frozen=True, eq=False)
class ScenarioData:
    """What a scenario gives to learn from, and to judge by.

    `logged` are the logging ranker's scores of the test documents, the mean of several rankers;
    nothing where luck ranked. `truth` has a curve for each value of `context`, if there is one.
    `sizes` tell how large the collection is.
    """

    log: ClickLog
    train: Dataset
    test: Dataset
    truth: Propensity
    logged: Scores | None
    context: str | None
    sizes: dict[str, Any]


def scenario_data(name: str, collection: Collection, seed: int) -> ScenarioData:
    """The log of a scenario, with the features that the learner sees."""
    scenario, simulation = SCENARIOS[name], simulation_of(collection, seed)
    seen, hidden = _columns(simulation.train.feature_count, scenario.features, seed)
    ranking = _with_columns(simulation, hidden) if scenario.private else simulation
    bait = _bait(simulation) if scenario.bait else None
    perceived = simulation.train
    if bait is not None:
        perceived = _with_bait(perceived, bait.train > 0, scenario.bait)
    sessions = scenario.sessions // len(scenario.parts)
    if collection.root is not None:
        sessions = round(sessions * len(simulation.train) / QUERIES)
    rng = np.random.default_rng([seed, 0x_5CE])
    logs, lists, rankers = [], [], []
    for crowd in scenario.parts:
        scores = logging_scores(crowd.logger, ranking, seed)
        if bait is not None:
            scores = [_liking(each, bait) for each in scores]
        rankers += scores
        lists.append(lists_of(simulation.train, scores, scenario.depth))
        weights = _zipf(lists[-1], seed) if scenario.zipf else None
        logs.append(dr.sample_log(perceived, lists[-1], crowd.user, sessions, rng, weights=weights))
    names = [crowd.name for crowd in scenario.parts]
    curves = {
        crowd.name: _shuffled_clicks(perceived, shown, crowd.user, rng)
        for crowd, shown in zip(scenario.parts, lists, strict=True)
    }
    shown = _with_columns(simulation, seen)
    return ScenarioData(
        join_logs(logs, names, scenario.context),
        shown.train,
        shown.test,
        _truth_of(curves, scenario.context),
        mean_of(rankers),
        scenario.context,
        simulation.sizes,
    )


def join_logs(logs: Sequence[ClickLog], names: Sequence[str], context: str | None) -> ClickLog:
    """One log of several; its column `context`, if there is one, says from which a session is."""
    if len(logs) == 1:
        return logs[0]
    documents = np.concatenate([log.lists.documents for log in logs])
    queries = np.concatenate([log.lists.queries for log in logs])
    distinct, first, new = np.unique(documents, axis=0, return_index=True, return_inverse=True)
    starts = np.cumsum([0, *(len(log.lists) for log in logs)])
    sizes = [len(log.counts) for log in logs]
    codes = np.repeat(np.arange(len(logs), dtype=np.int32), sizes)
    return ClickLog.from_clicks(
        RankedLists(distinct, queries[first]),
        new[np.concatenate([log.list_of for log in logs]) + starts[codes]],
        np.concatenate([log.clicks for log in logs]),
        np.concatenate([log.counts for log in logs]),
        columns={} if context is None else {context: Column(tuple(names), codes)},
        catalogue=logs[0].catalogue,
    )


def shuffled_truth(
    dataset: Dataset, lists: RankedLists, user: User, rng: np.random.Generator
) -> Propensity:
    """What shuffling the lists would measure with any number of sessions.

    For position-based users this is their examination, up to how well shuffling mixes; for others
    it is the nearest thing that a curve can be.
    """
    return Propensity.of(_shuffled_clicks(dataset, lists, user, rng), method="truth")


def _shuffled_clicks(
    dataset: Dataset, lists: RankedLists, user: User, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Clicks expected at each position of shuffled lists."""
    shuffled = shuffle_lists(lists, COPIES_SHUFFLED, rng)
    grades = shuffled.gather(dataset.require_grades())
    pages = user.browse(grades, shuffled.mask, dataset.max_grade)
    full = shuffled.mask.all(axis=1)
    clicks: NDArray[np.float64] = pages.marginal()[full].mean(axis=0)
    return clicks


def _truth_of(curves: dict[str, NDArray[np.float64]], context: str | None) -> Propensity:
    """The curve of all crowds together, and by `context` that of each."""
    pooled = Propensity.of(np.mean(list(curves.values()), axis=0), method="truth")
    if context is None:
        return pooled
    by_crowd = {
        name: {"examination": (curve / curve[0]).tolist()} for name, curve in curves.items()
    }
    return replace(pooled, details={"context": context, "contexts": by_crowd})


def _zipf(lists: RankedLists, seed: int) -> NDArray[np.float64]:
    """How often each list is asked for: the n-th query in proportion to 1/n, in random order."""
    order = np.random.default_rng([seed, 0x_21F]).permutation(int(lists.queries.max()) + 1)
    return 1.0 / (1 + order[lists.queries])


def _columns(
    count: int, share: float, seed: int
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """The features that the learner sees, and those that it does not."""
    order = np.random.default_rng([seed, 0x_FEA]).permutation(count)
    seen = round(share * count)
    return np.sort(order[:seen]), np.sort(order[seen:])


def _with_columns(simulation: Simulation, columns: NDArray[np.integer]) -> Simulation:
    """Training and test data with these features only."""
    train, test = (
        replace(part, features=np.ascontiguousarray(part.features[:, columns]))
        for part in (simulation.train, simulation.test)
    )
    return replace(simulation, train=train, test=test)


def _bait(simulation: Simulation) -> Logged:
    """1 where a document is clickbait, by the feature that says least about grades in a query."""
    train = simulation.train
    query = train.query_of_document

    def within(values: Scores) -> Scores:
        return values - (np.bincount(query, values) / train.lengths)[query]

    grades = within(train.require_grades())
    told = np.full(train.feature_count, np.inf)
    for column, values in enumerate(train.features.T):
        spread = within(values)
        if spread.std() > values.std() / 2:
            told[column] = abs(grades @ spread) / spread.std()
    bait = int(np.argmin(told))
    least = np.quantile(train.features[:, bait], 1 - BAITED)
    return Logged(*((part.features[:, bait] > least) * 1.0 for part in (train, simulation.test)))


def _with_bait(dataset: Dataset, bait: NDArray[np.bool_], strength: float) -> Dataset:
    """Grades as users perceive them: bait that is not relevant looks so with this probability.

    With relevance γ = (2^y − 1)/(2^y_max − 1), bait has γ + (1 − γ) · strength.
    """
    top = np.exp2(dataset.max_grade) - 1
    gamma = (np.exp2(dataset.require_grades().astype(np.float64)) - 1) / top
    gamma = np.where(bait, gamma + (1 - gamma) * strength, gamma)
    return replace(dataset, grades=np.log2(1 + gamma * top).astype(np.float32))


def _liking(ranker: Logged, bait: Logged) -> Logged:
    """The same ranker, to which bait is worth one standard deviation of its scores."""
    spread = ranker.train.std()
    test = None if ranker.test is None or bait.test is None else ranker.test + spread * bait.test
    return Logged(ranker.train + spread * bait.train, test)
