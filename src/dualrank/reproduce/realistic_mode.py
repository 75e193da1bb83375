"""Realistic Mode, the paper's Figures 1 and 2: users have changed since randomisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.errors import SettingsError
from dualrank.report.results import Results
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.comparison_with_dla import compare_with_reference
from dualrank.reproduce.kept_runs import KeptRuns
from dualrank.reproduce.methods import Recipe, Users, describe, require_known
from dualrank.reproduce.presets import recipe_of
from dualrank.reproduce.processes import Report
from dualrank.reproduce.runner import run_tasks
from dualrank.reproduce.tasks import Task
from dualrank.version import __version__

ETAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
SESSIONS_PER_LIST = 16
PROPENSITY_RATE = 5.0


@dataclass(frozen=True)
class RealisticMode:
    """Training clicks at several severities η, propensities measured at one."""

    collection: Collection
    recipe: Recipe
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    etas: tuple[float, ...] = ETAS
    measured_eta: float = 1.0
    methods: tuple[str, ...] = ("naive", "randlist", "dla")

    def __post_init__(self) -> None:
        require_known(self.methods)
        if not self.seeds or not self.etas:
            raise SettingsError("an experiment needs at least one seed and one eta")
        self.collection.check_seeds(self.seeds)

    @classmethod
    def preset(cls, name: str, collection: Collection | None = None) -> RealisticMode:
        """The experiment of a preset, on generated data unless another collection is given.

        At η = 2 the last position is examined once in 128 times as often as the first, so that
        with one user per list even the true propensities gain little over none. Sixteen users
        look at every list that is drawn, for half the steps. With as much less noise φ can move
        faster, which it must: at the usual rate it is still on its way to so steep a curve when
        the training ends.
        """
        recipe = recipe_of(name)
        training = replace(
            recipe.training, steps=recipe.training.steps // 2, propensity_rate=PROPENSITY_RATE
        )
        recipe = replace(recipe, training=training, sessions_per_list=SESSIONS_PER_LIST)
        return cls(collection or Collection(name), recipe)

    @property
    def tasks(self) -> list[Task]:
        """One task per seed, severity and method."""
        measured = PositionBasedUser(eta=self.measured_eta)
        return [
            Task(
                self.collection,
                Users(training=PositionBasedUser(eta=eta), randomisation=measured),
                self.recipe.with_seed(seed),
                method,
                setting={"eta": eta},
            )
            for seed in self.seeds
            for eta in self.etas
            for method in self.methods
        ]


def run_realistic_mode(
    experiment: RealisticMode,
    *,
    jobs: int = 1,
    report: Report | None = None,
    finished: Callable[[], None] | None = None,
    kept: KeptRuns | None = None,
) -> Results:
    """Train at every severity, and compare with dual learning at each of them."""
    trained = run_tasks(experiment.tasks, jobs=jobs, report=report, finished=finished, kept=kept)
    pool = experiment.collection.new_for_every_seed
    at_eta = {
        f"{eta:g}": compare_with_reference(
            [t for t in trained if getattr(t.run, "eta", None) == eta], pool=pool
        )
        for eta in experiment.etas
    }
    settings = {
        "data": experiment.collection.describe(experiment.seeds),
        **trained[0].sizes.model_dump(),
        **describe(experiment.recipe),
        "seeds": list(experiment.seeds),
        "measured_eta": experiment.measured_eta,
        "etas": list(experiment.etas),
        "epsilon": PositionBasedUser().epsilon,
        "version": __version__,
    }
    return Results(
        experiment="realistic-mode",
        settings=settings,
        runs=[result.run for result in trained],
        significance={"by_eta": at_eta},
    )
