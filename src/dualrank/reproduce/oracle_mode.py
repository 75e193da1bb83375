"""Oracle Mode, the paper's Table 2: the bias in training is the one that randomisation measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import dualrank as dr
from dualrank.clicks import PositionBasedUser
from dualrank.errors import SettingsError
from dualrank.learning import Progress
from dualrank.report import Results, Sheet, results_sheet
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.comparison_with_dla import compare_with_dla
from dualrank.reproduce.experiment import Task, Trained, require_known
from dualrank.reproduce.findings import POSITION_BASED, findings
from dualrank.reproduce.simulation import SimulationExperiment, simulation_of
from dualrank.reproduce.table_2_rows import (
    METHODS,
    Hyperparameters,
    PositionModelName,
    Users,
    preset_of,
    run_method,
    true_examination,
)
from dualrank.reproduce.tuning import tune


@dataclass(frozen=True, kw_only=True)
class OracleMode(SimulationExperiment):
    """The paper's Table 2: seven rankers, MAP, nDCG and ERR, significance against DLA.

    An experiment that was interrupted goes on with the rows that are missing.

    Example: dualrank reproduce oracle-mode --seeds 5

    Example: dualrank reproduce oracle-mode --data mq2008 --root ~/MQ2008 --seeds 5
    """

    name = "oracle-mode"
    title = "Learning to rank from biased clicks: oracle mode"

    data: Annotated[
        str | None,
        "A public set (yahoo-set1, mslr-web10k, mslr-web30k, istella-s, mq2007, mq2008); "
        "without it data are generated.",
    ] = None
    root: Annotated[Path | None, "The folder of the downloaded set."] = None
    fold: Annotated[str, "The fold of sets that have several; all: another for every seed."] = "1"
    tune: Annotated[bool, "Search the paper's ranges on validation data."] = False
    steps: Annotated[int | None, "Training steps.", {"min": 1}] = None
    learning_rate: Annotated[float | None, "The ranker's rate."] = None
    propensity_rate: Annotated[float | None, "The propensity model's rate."] = None
    optimizer: Annotated[str | None, "sgd or adagrad."] = None
    schedule: Annotated[str | None, "Rates: linear or constant."] = None
    normalisation: Annotated[str | None, "The loss is divided by: sessions or clicks."] = None
    batch_size: Annotated[int | None, "Sessions per step.", {"min": 1}] = None
    metric: Annotated[str | None, "Keeps the best ranker."] = None
    hidden: Annotated[tuple[int, ...] | None, "Hidden layers, such as 256,128."] = None
    elu_output: Annotated[bool, "The network as the paper prints it."] = False
    precision: Annotated[
        Literal["float32", "bfloat16"], "Of matrix products in training: float32 or bfloat16."
    ] = "float32"
    C: Annotated[float | None, "The SVM's weight of errors."] = None
    position_model: Annotated[PositionModelName, "What DLA learns about examination."] = "variables"
    epsilon: Annotated[float, "The click noise."] = 0.1
    eta: Annotated[float, "The severity of the position bias."] = 1.0
    methods: Annotated[tuple[str, ...], "Only these rows, separated by commas.", ","] = field(
        default=tuple(METHODS), repr=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_known("method", self.methods, list(METHODS))
        self.collection.check_seeds(self.all_seeds)
        _ = self.hyperparameters, self.user  # built now, so that wrong values are refused

    @cached_property
    def collection(self) -> Collection:
        """The public set, or generated data."""
        if (self.data is None) != (self.root is None):
            raise SettingsError(
                "data='NAME' and root='FOLDER' go together: a public set, and where it lies"
            )
        if self.data is None:
            return super().collection
        if self.fold != "all" and not self.fold.isdecimal():
            raise SettingsError(f"fold={self.fold} is neither a number from 1 nor 'all'")
        return Collection(self.data, self.root, None if self.fold == "all" else int(self.fold))

    @cached_property
    def hyperparameters(self) -> Hyperparameters:
        """Those of the preset, with the options that were given."""
        chosen = preset_of(self.preset)
        training = {knob.name: getattr(self, knob.name, None) for knob in fields(chosen.training)}
        ranker = dr.DNN(self.hidden or chosen.ranker.hidden, self.elu_output, self.precision)
        return replace(
            chosen,
            ranker=ranker,
            C=chosen.C if self.C is None else self.C,
            position_model=self.position_model,
        ).with_training(**training)

    @cached_property
    def user(self) -> PositionBasedUser:
        """Who clicks, in training as when results were shuffled."""
        return PositionBasedUser(eta=self.eta, epsilon=self.epsilon)

    def tasks(self) -> list[Task]:
        """One per seed and method."""
        return [Task(self, method, seed) for seed in self.all_seeds for method in self.methods]

    def work(self, task: Task, progress: Progress) -> list[Trained]:
        """Train one row of the table."""
        simulation = simulation_of(self.collection, task.seed)
        chosen = self.hyperparameters.with_training(seed=task.seed)
        users = Users(training=self.user, randomisation=self.user)
        if self.tune:
            best = tune(task.method, simulation, users, chosen, progress)
            return [best.outcome.trained(task, simulation, trials=best.trials)]
        return [
            run_method(task.method, simulation, users, chosen, progress).trained(task, simulation)
        ]

    def settings(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """The data, the training and the users."""
        return {
            **super().settings(trained),
            **self.hyperparameters.describe(),
            "tuned": self.tune,
            "eta": self.eta,
            "epsilon": self.epsilon,
            "true_examination": true_examination(self.user),
        }

    def significance(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """Every method against dual learning."""
        return compare_with_dla(trained, pool=self.collection.new_for_every_seed)

    def sheet(self, results: dict[str, Results]) -> Sheet:
        """The table, what it says, and the curves behind it."""
        found = results["results"]
        return results_sheet(found, self.title, verdict=findings(found), caveat=POSITION_BASED)


class Demo(OracleMode):
    """Table 2 once, for those who want to see what it is about."""

    name = "demo"
    title = "Learning to rank from biased clicks"
