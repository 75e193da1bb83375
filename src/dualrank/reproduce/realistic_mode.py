"""Realistic Mode, the paper's Figures 1 and 2: users have changed since randomisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

from dualrank.clicks import PositionBasedUser
from dualrank.errors import SettingsError
from dualrank.learning import Progress
from dualrank.report import Results, Sheet, results_sheet
from dualrank.reproduce.comparison_with_dla import compare_at_each
from dualrank.reproduce.experiment import Task, Trained
from dualrank.reproduce.findings import POSITION_BASED, findings, ranges
from dualrank.reproduce.simulation import SimulationExperiment, simulation_of
from dualrank.reproduce.table_2_rows import Hyperparameters, Users, preset_of, run_method

ETAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
METHODS = ("naive", "randlist", "dla")
MEASURED_ETA = 1.0
SESSIONS_PER_LIST = 16
PROPENSITY_RATE = 5.0


@dataclass(frozen=True, kw_only=True)
class RealisticMode(SimulationExperiment):
    """The paper's Figures 1 and 2: users have changed since their examination was measured.

    Propensities are measured at severity 1, clicks in training come at others.

    Example: dualrank reproduce realistic-mode --seeds 5
    """

    name = "realistic-mode"
    title = "Learning to rank from biased clicks: realistic mode"

    etas: Annotated[tuple[float, ...], "Severities in training, separated by commas."] = field(
        default=ETAS, repr=False
    )
    steps: Annotated[int | None, "Training steps.", {"min": 1}] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.etas:
            raise SettingsError("an experiment needs at least one eta")
        for eta in self.etas:
            PositionBasedUser(eta=eta)

    @cached_property
    def hyperparameters(self) -> Hyperparameters:
        """Those of the preset, for bias that is severe.

        At η = 2 the last position is examined once in 128 times as often as the first, so that
        with one user per list even the true propensities gain little over none. Sixteen users
        look at every list that is drawn, for half the steps. With as much less noise φ can move
        faster, which it must: at the usual rate it is still on its way to so steep a curve when
        the training ends.
        """
        chosen = preset_of(self.preset)
        steps = chosen.training.suited().steps // 2 if self.steps is None else self.steps
        chosen = chosen.with_training(steps=steps, propensity_rate=PROPENSITY_RATE)
        return replace(chosen, sessions_per_list=SESSIONS_PER_LIST)

    def tasks(self) -> list[Task]:
        """One per seed, severity and method."""
        return [
            Task(self, method, seed, {"eta": eta})
            for seed in self.all_seeds
            for eta in self.etas
            for method in METHODS
        ]

    def work(self, task: Task, progress: Progress) -> list[Trained]:
        """Train at one severity."""
        simulation = simulation_of(self.collection, task.seed)
        users = Users(
            training=PositionBasedUser(eta=task.setting["eta"]),
            randomisation=PositionBasedUser(eta=MEASURED_ETA),
        )
        chosen = self.hyperparameters.with_training(seed=task.seed)
        return [
            run_method(task.method, simulation, users, chosen, progress).trained(task, simulation)
        ]

    def settings(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """The data, the training and the severities."""
        return {
            **super().settings(trained),
            **self.hyperparameters.describe(),
            "measured_eta": MEASURED_ETA,
            "etas": list(self.etas),
            "epsilon": PositionBasedUser().epsilon,
        }

    def significance(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """Every method against dual learning, at each severity."""
        pool = self.collection.new_for_every_seed
        return {"by_eta": compare_at_each(trained, "eta", self.etas, pool=pool)}

    def sheet(self, results: dict[str, Results]) -> Sheet:
        """The table, and each metric against the severity."""
        found = results["results"]
        sentences = ranges(found, "eta") if len(self.etas) > 1 else findings(found)
        return results_sheet(found, self.title, verdict=sentences, caveat=POSITION_BASED)
