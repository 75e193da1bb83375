"""The rows of the paper's tables, each as data about which pieces it combines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_click_counts
from dualrank.corrections.position_models import PositionModelName, build_position_model
from dualrank.corrections.weighting import DualLearning, GivenPropensity, NoCorrection, Weighting
from dualrank.errors import SettingsError
from dualrank.evaluation.propensity_error import inverse_propensity_mse
from dualrank.learning.feedback import Feedback, Judgments, SimulatedClicks
from dualrank.learning.loop import Progress, Trainer
from dualrank.learning.validation import OnGrades
from dualrank.propensity.propensity import Propensity
from dualrank.propensity.randomisation import collect_shuffled_clicks, from_shuffled_clicks
from dualrank.rankers.network import DNN
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.report.results import PropensityResult
from dualrank.reproduce.simulation import Simulation
from dualrank.settings import TrainingSettings


@dataclass(frozen=True)
class Method:
    """Which ranker learns from which labels with which correction."""

    ranker: Literal["dnn", "svm", "initial"]
    labels: Literal["clicks", "grades"] = "clicks"
    correction: Literal["none", "randomisation", "dual"] = "none"


METHODS = {
    "dla": Method("dnn", correction="dual"),
    "svm-naive": Method("svm"),
    "svm-randlist": Method("svm", correction="randomisation"),
    "naive": Method("dnn"),
    "randlist": Method("dnn", correction="randomisation"),
    "initial": Method("initial", labels="grades"),
    "oracle": Method("dnn", labels="grades"),
}


def require_known(names: Iterable[str]) -> None:
    """Refuse a method that does not exist, and say which do."""
    for name in names:
        if name not in METHODS:
            raise SettingsError(f"unknown method {name!r}; known are {', '.join(METHODS)}")


@dataclass(frozen=True)
class Recipe:
    """The hyper-parameters that the methods of an experiment share."""

    training: TrainingSettings
    ranker: DNN
    C: float = 100.0
    randomised_sessions: int = 2_000_000
    sessions_per_list: int = 1
    """Users who look at a list each time that it is drawn."""
    position_model: PositionModelName = "variables"
    """The form of what dual learning learns about examination."""

    def with_seed(self, seed: int) -> Recipe:
        """The same recipe for another seed."""
        return replace(self, training=replace(self.training, seed=seed))


@dataclass(frozen=True)
class Users:
    """Who clicks in training, and who clicked when results were shuffled to measure examination.

    They are the same in Oracle Mode; in Realistic Mode users have changed since the measurement.
    """

    training: PositionBasedUser
    randomisation: PositionBasedUser


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method gives: scores of the test and validation documents, and what it believes."""

    test_scores: NDArray[np.float32]
    valid_scores: NDArray[np.float32]
    propensity: PropensityResult | None
    seconds: float
    curve: dict[str, list[float]] | None = None
    left_out: int = 0


def run_method(
    name: str,
    simulation: Simulation,
    users: Users,
    recipe: Recipe,
    progress: Progress | None = None,
    *,
    measured: Propensity | None = None,
) -> Outcome:
    """Train one row of the table and score the test documents with it.

    `measured` are the propensities of randomisation, where they are at hand already.
    """
    require_known([name])
    started = time.perf_counter()
    method = METHODS[name]
    believed: Propensity | None = None
    if method.correction == "randomisation":
        believed = measured or measure_by_randomisation(simulation, users, recipe)
    curve, left_out = None, 0
    if method.ranker == "initial":
        score: Callable[[NDArray[np.float32]], NDArray[np.float32]] = simulation.initial.score
    elif method.ranker == "svm":
        score = _train_svm(simulation, users.training, recipe, believed)
    else:
        trainer = _trainer(method, simulation, users.training, recipe, believed)
        history = trainer.run(progress=progress)
        believed = trainer.weighting.propensity()
        score, left_out = trainer.ranker.predict, history.left_out
        curve = {"steps": [float(s) for s in history.steps], recipe.training.metric: history.values}
    return Outcome(
        test_scores=score(simulation.test.features),
        valid_scores=score(simulation.valid.features),
        propensity=None if believed is None else judge(believed, users.training),
        seconds=time.perf_counter() - started,
        curve=curve,
        left_out=left_out,
    )


def measure_by_randomisation(simulation: Simulation, users: Users, recipe: Recipe) -> Propensity:
    """The propensities of RandList: shuffled lists, shown to the users of that time."""
    rng = np.random.default_rng([recipe.training.seed, 0x_4A11])
    clicks, impressions = collect_shuffled_clicks(
        simulation.train, simulation.lists, users.randomisation, recipe.randomised_sessions, rng
    )
    return from_shuffled_clicks(clicks, impressions)


def _trainer(
    method: Method,
    simulation: Simulation,
    user: PositionBasedUser,
    recipe: Recipe,
    believed: Propensity | None,
) -> Trainer:
    train, lists, settings = simulation.train, simulation.lists, recipe.training
    feedback: Feedback = (
        Judgments(train, lists)
        if method.labels == "grades"
        else SimulatedClicks(train, lists, user, sessions=recipe.sessions_per_list)
    )
    weighting: Weighting = NoCorrection()
    if method.correction == "dual":
        model = build_position_model(recipe.position_model, lists.depth, settings.seed)
        weighting = DualLearning(lists.depth, settings, model)
    elif believed is not None:
        weighting = GivenPropensity(believed, lists.depth, settings.max_weight)
    return Trainer(
        recipe.ranker.build(train.feature_count, settings.seed),
        torch.from_numpy(train.features),
        feedback,
        weighting,
        settings,
        validation=OnGrades(simulation.valid.features, simulation.valid, settings.metric),
    )


def _train_svm(
    simulation: Simulation, user: PositionBasedUser, recipe: Recipe, believed: Propensity | None
) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """A Ranking SVM on as many sessions as the networks see."""
    settings = recipe.training
    rng = np.random.default_rng([settings.seed, 0x_57A])
    clicks = sample_click_counts(
        simulation.train,
        simulation.lists,
        user,
        settings.steps * settings.batch_size * recipe.sessions_per_list,
        rng,
    )
    svm = RankingSVM(C=recipe.C, seed=settings.seed)
    examination = None
    if believed is not None:
        examination = np.maximum(believed.examination, 1 / settings.max_weight)
    return svm.fit_clicks(simulation.train.features, simulation.lists, clicks, examination).score


def judge(believed: Propensity, user: PositionBasedUser) -> PropensityResult:
    """The curve that is believed, beside its error against the truth."""
    bounds = {
        name: values.tolist()
        for name, values in (("low", believed.low), ("high", believed.high))
        if values is not None
    }
    return PropensityResult(
        examination=believed.examination.tolist(),
        mse=inverse_propensity_mse(believed.examination, user.examination(believed.depth)),
        **bounds,
    )


def describe(recipe: Recipe) -> dict[str, object]:
    """The recipe as plain values, for `results.json`."""
    training = asdict(recipe.training)
    del training["seed"]
    return {
        **training,
        "ranker": "DNN " + "-".join(map(str, recipe.ranker.hidden)),
        "hidden": list(recipe.ranker.hidden),
        "elu_output": recipe.ranker.elu_output,
        "precision": recipe.ranker.precision,
        "C": recipe.C,
        "randomised_sessions": recipe.randomised_sessions,
        "sessions_per_list": recipe.sessions_per_list,
        "position_model": recipe.position_model,
    }
