"""The rows of the paper's tables, each as data about which pieces it combines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.clicks import PositionBasedUser
from dualrank.learning import Feedback, Judgments, Progress, SimulatedClicks
from dualrank.propensity import Propensity, collect_shuffled_clicks, from_shuffled_clicks
from dualrank.report import PropensityResult
from dualrank.reproduce.experiment import Task, Trained, require_known
from dualrank.reproduce.simulation import Simulation

PositionModelName = Literal["variables", "network", "recurrent"]


@dataclass(frozen=True)
class Method:
    """Which ranker learns from which labels; `method` is that of `dualrank.fit`.

    The propensities of `ipw` are those that randomisation measured.
    """

    ranker: Literal["dnn", "svm", "initial"]
    method: Literal["dla", "ipw", "naive"] = "naive"
    labels: Literal["clicks", "grades"] = "clicks"


METHODS = {
    "dla": Method("dnn", "dla"),
    "svm-naive": Method("svm"),
    "svm-randlist": Method("svm", "ipw"),
    "naive": Method("dnn"),
    "randlist": Method("dnn", "ipw"),
    "initial": Method("initial", labels="grades"),
    "oracle": Method("dnn", labels="grades"),
}


@dataclass(frozen=True)
class Hyperparameters:
    """What the methods of an experiment share."""

    training: dr.TrainingSettings
    ranker: dr.DNN
    C: float = 100.0
    randomised_sessions: int = 2_000_000
    sessions_per_list: int = 1
    """Users who look at a list each time that it is drawn."""
    position_model: PositionModelName = "variables"
    """The form of what dual learning learns about examination."""

    def with_training(self, **changes: Any) -> Hyperparameters:
        """The same with other settings of the training; those that are None stay."""
        given = {name: value for name, value in changes.items() if value is not None}
        return replace(self, training=replace(self.training, **given))

    def describe(self) -> dict[str, object]:
        """Plain values, for `results.json`."""
        own = asdict(self)
        described = {**own.pop("training"), **own.pop("ranker"), **own}
        del described["seed"]
        hidden = list(self.ranker.hidden)
        return {**described, "hidden": hidden, "ranker": "DNN " + "-".join(map(str, hidden))}


PRESETS = {
    "tiny": Hyperparameters(
        dr.TrainingSettings(steps=300), dr.DNN((32,)), randomised_sessions=100_000
    ),
    "laptop": Hyperparameters(dr.TrainingSettings(steps=4_000), dr.DNN((256, 128))),
    "full": Hyperparameters(dr.TrainingSettings(steps=10_000), dr.DNN((512, 256, 128))),
}


def preset_of(name: str) -> Hyperparameters:
    """What goes with the generator's preset of that name."""
    require_known("preset", [name], list(PRESETS))
    return PRESETS[name]


@dataclass(frozen=True)
class Users:
    """Who clicks in training, and who clicked when results were shuffled to measure examination.

    They are the same in Oracle Mode; in Realistic Mode users have changed since the measurement.
    """

    training: PositionBasedUser
    randomisation: PositionBasedUser


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method gives: scores of the test and validation documents, and what it believes.

    `extra` is what its run says beyond the common keys, such as the curve of its validation.
    """

    test_scores: NDArray[np.float32]
    valid_scores: NDArray[np.float32]
    propensity: PropensityResult | None
    seconds: float
    extra: dict[str, Any]

    def trained(self, task: Task, simulation: Simulation, **extra: Any) -> Trained:
        """The scores of the test documents judged, as what the task leaves."""
        return Trained.of(
            task.method,
            task.seed,
            dr.evaluate_per_query(self.test_scores, simulation.test),
            seconds=self.seconds,
            sizes=simulation.sizes,
            propensity=self.propensity,
            **{**task.setting, **extra, **self.extra},
        )


def run_method(
    name: str,
    simulation: Simulation,
    users: Users,
    chosen: Hyperparameters,
    progress: Progress | None = None,
    *,
    measured: Propensity | None = None,
) -> Outcome:
    """Train one row of the table and score the test documents with it.

    `measured` are the propensities of randomisation, where they are at hand already.
    """
    require_known("method", [name], list(METHODS))
    started = time.perf_counter()
    method, metric = METHODS[name], chosen.training.metric
    believed, extra = None, dict[str, Any]()
    score: Callable[[NDArray[np.float32]], NDArray[np.float32]] = simulation.initial.score
    if method.ranker != "initial":
        if method.method == "ipw":
            believed = measured or measure_by_randomisation(simulation, users, chosen)
        model = _fit(method, simulation, users.training, chosen, believed, progress)
        score, believed = model.predict, model.propensity
        history = model.training.get("history")
        if method.ranker == "dnn" and history is not None:
            steps = [float(step) for step in history["steps"]]
            extra["curve"] = {"steps": steps, metric: history["values"]}
            extra |= {"left_out": history["left_out"]} if history["left_out"] else {}
    return Outcome(
        test_scores=score(simulation.test.features),
        valid_scores=score(simulation.valid.features),
        propensity=judge(believed, users.training.examination(simulation.lists.depth)),
        seconds=time.perf_counter() - started,
        extra=extra,
    )


def _fit(
    method: Method,
    simulation: Simulation,
    user: PositionBasedUser,
    chosen: Hyperparameters,
    believed: Propensity | None,
    progress: Progress | None,
) -> dr.Model:
    """By `dualrank.fit`, as any user does; features are scaled already."""
    train, lists, settings = simulation.train, simulation.lists, chosen.training
    common: dict[str, Any] = {
        "method": method.method,
        "propensity": believed,
        "scaling": "none",
        "settings": settings,
        "progress": progress,
    }
    if method.ranker == "svm":
        # A Ranking SVM takes all clicks at once: as many sessions as the networks see.
        rng = np.random.default_rng([settings.seed, 0x_57A])
        sessions = settings.suited().steps * settings.batch_size * chosen.sessions_per_list
        log = dr.sample_log(train, lists, user, sessions, rng)
        svm = dr.RankingSVM(C=chosen.C, seed=settings.seed)
        return dr.fit(log, train, ranker=svm, validation=0, **common)
    source: Feedback = (
        Judgments(train, lists)
        if method.labels == "grades"
        else SimulatedClicks(train, lists, user, sessions=chosen.sessions_per_list)
    )
    if method.method == "dla":
        common["position_model"] = chosen.position_model
    return dr.fit(source, train, ranker=chosen.ranker, validation=simulation.valid, **common)


def measure_by_randomisation(
    simulation: Simulation, users: Users, chosen: Hyperparameters
) -> Propensity:
    """The propensities of RandList: shuffled lists, shown to the users of that time."""
    rng = np.random.default_rng([chosen.training.seed, 0x_4A11])
    clicks, impressions = collect_shuffled_clicks(
        simulation.train, simulation.lists, users.randomisation, chosen.randomised_sessions, rng
    )
    return from_shuffled_clicks(clicks, impressions)


def judge(believed: Propensity | None, truth: NDArray[np.float64]) -> PropensityResult | None:
    """The curve that is believed, with its interval and its error against the truth."""
    if believed is None:
        return None
    bounds = {"low": believed.low, "high": believed.high}
    return PropensityResult(
        examination=believed.examination.tolist(),
        mse=dr.inverse_propensity_mse(believed.examination, truth[: believed.depth]),
        **{name: values.tolist() for name, values in bounds.items() if values is not None},
    )


def true_examination(user: PositionBasedUser) -> list[float]:
    """The examination of a user relative to the first position, for `results.json`."""
    examination = user.examination(len(user.curve))
    return (examination / examination[0]).tolist()
