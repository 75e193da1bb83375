"""Where dual learning is right and where it is not: logs of several rankers and several users.

The paper's simulation has one logging ranker, a weak one, and users who keep to the position-based
assumption. Each scenario here changes one thing. Every ranker is trained from a log as a team would
train it, with clicks held out and no judgement seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.clicks.user import User
from dualrank.clicks.users import CascadeUser, TrustingUser
from dualrank.corrections.weighting import NoCorrection
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.interventions import join_lists, shuffle_lists
from dualrank.data.lists import RankedLists, top_lists
from dualrank.diagnostics.diagnosis import diagnose
from dualrank.errors import SettingsError
from dualrank.evaluation.evaluator import evaluate
from dualrank.evaluation.propensity_error import inverse_propensity_mse
from dualrank.learning.auto import choose_by_clicks, doubt, harvested_propensity
from dualrank.learning.feedback import Judgments
from dualrank.learning.fit import fit, hold_out
from dualrank.learning.loop import Progress, Trainer
from dualrank.learning.model import Model
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN, Linear
from dualrank.report.results import PropensityResult, Results, Run
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.processes import Report, map_tasks
from dualrank.reproduce.simulation import DEPTH, Simulation, stage
from dualrank.settings import TrainingSettings
from dualrank.version import __version__

Logger = Literal["random", "initial", "linear", "network", "three networks"]
METHODS = ("naive", "truth", "dla", "auto")
METRICS = ["ndcg@10", "err@10"]
COPIES_SHUFFLED = 20


@dataclass(frozen=True)
class Scenario:
    """Who ranked what was logged, who clicked, what the learner sees, and how much of it."""

    title: str
    logger: Logger = "initial"
    user: User = field(default_factory=PositionBasedUser)
    features: float = 1.0
    sessions: int = 1_000_000


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
}


@dataclass(frozen=True)
class Scenarios:
    """The scenarios, the collection that they are played on, and how rankers are trained."""

    collection: Collection = field(default_factory=Collection)
    names: tuple[str, ...] = tuple(SCENARIOS)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    ranker: DNN = field(default_factory=lambda: DNN((64, 32)))
    settings: TrainingSettings = field(default_factory=lambda: TrainingSettings(steps=2_000))
    held_out: float = 0.2

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in SCENARIOS:
                raise SettingsError(f"unknown scenario {name!r}; known are {', '.join(SCENARIOS)}")
        if not self.seeds or not self.names:
            raise SettingsError("an experiment needs at least one seed and one scenario")

    @property
    def plays(self) -> list[Play]:
        """One play per seed and scenario."""
        return [Play(self, name, seed) for seed in self.seeds for name in self.names]


@dataclass(frozen=True)
class Play:
    """One scenario with one seed."""

    experiment: Scenarios
    name: str
    seed: int

    def __str__(self) -> str:
        return f"{self.name}, seed {self.seed}"


def run_scenarios(
    experiment: Scenarios,
    *,
    jobs: int = 1,
    report: Report | None = None,
    finished: Callable[[], None] | None = None,
) -> Results:
    """Play every scenario with every seed."""
    played: dict[int, list[Run]] = {}
    for index, runs in map_tasks(_play, experiment.plays, jobs=jobs, report=report):
        played[index] = runs
        if finished:
            finished()
    settings = {
        "data": experiment.collection.describe(experiment.seeds),
        "seeds": list(experiment.seeds),
        "ranker": "DNN " + "-".join(map(str, experiment.ranker.hidden)),
        "steps": experiment.settings.steps,
        "held_out": experiment.held_out,
        "scenarios": {name: SCENARIOS[name].title for name in experiment.names},
        "version": __version__,
    }
    runs = [run for index in sorted(played) for run in played[index]]
    return Results(experiment="scenarios", settings=settings, runs=runs)


@lru_cache(maxsize=1)
def _stage(collection: Collection, seed: int) -> Simulation:
    return stage(collection.load(seed), seed)


@dataclass(frozen=True)
class Scene:
    """What a scenario gives to learn from, and to judge by."""

    log: ClickLog
    train: Dataset
    test: Dataset
    truth: Propensity


def set_up(name: str, collection: Collection, seed: int) -> Scene:
    """The log of a scenario, with the features that the learner sees."""
    scenario, simulation = SCENARIOS[name], _stage(collection, seed)
    lists = logging_lists(scenario.logger, simulation, seed)
    rng = np.random.default_rng([seed, 0x_5CE])
    log = sample_log(simulation.train, lists, scenario.user, scenario.sessions, rng)
    truth = shuffled_truth(simulation.train, lists, scenario.user, rng)
    train, test = _seen((simulation.train, simulation.test), scenario.features, seed)
    return Scene(log, train, test, truth)


def _play(play: Play, progress: Progress) -> list[Run]:
    experiment = play.experiment
    scene = set_up(play.name, experiment.collection, play.seed)
    log, train, test, truth = scene.log, scene.train, scene.test, scene.truth
    settings = replace(experiment.settings, seed=play.seed)
    rest, held_out = hold_out(log, experiment.held_out, play.seed)
    assert held_out is not None
    candidates: dict[str, dict[str, Any]] = {"naive": {}, "dla": {}, "truth": {"propensity": truth}}
    harvested = harvested_propensity(rest, play.seed)
    if isinstance(harvested, Propensity):
        candidates["ipw"] = {"propensity": harvested}
    models, seconds = {}, {}
    for number, (name, options) in enumerate(candidates.items()):

        def report(done: int, total: int, before: int = number) -> None:
            progress(before * total + done, len(candidates) * total)

        started = time.perf_counter()
        models[name] = fit(
            log,
            train,
            method="ipw" if options else name,  # type: ignore[arg-type]
            ranker=experiment.ranker,
            validation=experiment.held_out,
            settings=settings,
            progress=report,
            **options,
        )
        seconds[name] = time.perf_counter() - started
    # What `fit(method="auto")` would have trained, and chosen.
    scores = {name: model.predict(train) for name, model in models.items() if name != "truth"}
    choice = choose_by_clicks(scores, held_out, doubt(rest))
    diagnosis = diagnose(log, train, seed=play.seed)
    models["auto"] = models[choice.chosen]
    seconds["auto"] = sum(taken for name, taken in seconds.items() if name != "truth")
    told: dict[str, dict[str, Any]] = {
        "dla": {"lead": choice.leads["dla"].in_errors},
        "auto": {
            "chosen": choice.chosen,
            "why": choice.why,
            "verdict": diagnosis.verdict,
            "diagnosis": {point.name: point.status for point in diagnosis.points},
        },
    }
    return [
        Run(
            method=name,
            seed=play.seed,
            metrics=evaluate(model.predict(test), test, METRICS),
            propensity=_judged(model, truth),
            seconds=round(seconds[name], 2),
            **{"scenario": play.name, **told.get(name, {})},
        )
        for name, model in models.items()
    ]


def logging_lists(kind: Logger, simulation: Simulation, seed: int) -> RankedLists:
    """What the logging ranker displayed for the training queries."""
    train = simulation.train
    if kind == "initial":
        return simulation.lists
    if kind == "random":
        luck = np.random.default_rng([seed, 0x_10C]).random(train.document_count)
        return top_lists(train, luck, DEPTH)
    if kind == "linear":
        return top_lists(train, _train_on_grades(train, Linear(), seed), DEPTH)
    seeds = [seed] if kind == "network" else [seed, seed + 1_000, seed + 2_000]
    scores = [_train_on_grades(train, DNN((64, 32)), s) for s in seeds]
    return join_lists([top_lists(train, s, DEPTH) for s in scores])


def _train_on_grades(train: Dataset, ranker: DNN | Linear, seed: int) -> NDArray[np.float32]:
    """The scores of a ranker that knows every label."""
    settings = TrainingSettings(steps=1_500, seed=seed)
    everything = top_lists(train, np.zeros(train.document_count), int(train.lengths.max()))
    network = ranker.build(train.feature_count, seed)
    features = torch.from_numpy(train.features)
    Trainer(network, features, Judgments(train, everything), NoCorrection(), settings).run()
    return network.predict(train.features)


def shuffled_truth(
    dataset: Dataset, lists: RankedLists, user: User, rng: np.random.Generator
) -> Propensity:
    """What shuffling the lists would measure with any number of sessions.

    For position-based users this is their examination, up to how well shuffling mixes; for others
    it is the nearest thing that a curve can be.
    """
    shuffled = shuffle_lists(lists, COPIES_SHUFFLED, rng)
    grades = shuffled.gather(dataset.require_grades())
    pages = user.browse(grades, shuffled.mask, dataset.max_grade)
    full = shuffled.mask.all(axis=1)
    return Propensity.of(pages.marginal()[full].mean(axis=0), method="truth")


def _seen(parts: tuple[Dataset, Dataset], share: float, seed: int) -> tuple[Dataset, Dataset]:
    """Both data sets with the same share of their features, which is all that the learner sees."""
    count = parts[0].feature_count
    chosen = np.random.default_rng([seed, 0x_FEA]).permutation(count)[: round(share * count)]
    columns = np.sort(chosen)
    train, test = (
        replace(part, features=np.ascontiguousarray(part.features[:, columns])) for part in parts
    )
    return train, test


def _judged(model: Model, truth: Propensity) -> PropensityResult | None:
    if model.propensity is None:
        return None
    examination = model.propensity.examination
    return PropensityResult(
        examination=examination.tolist(),
        mse=inverse_propensity_mse(examination, truth.examination),
    )
