"""Oracle Mode, the paper's Table 2: the bias in training is the one that randomisation measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.errors import SettingsError
from dualrank.report.results import Results
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.comparison_with_dla import compare_with_reference
from dualrank.reproduce.kept_runs import KeptRuns
from dualrank.reproduce.methods import METHODS, Recipe, Users, describe, require_known
from dualrank.reproduce.presets import recipe_of
from dualrank.reproduce.processes import Report
from dualrank.reproduce.runner import run_tasks, truth_of
from dualrank.reproduce.tasks import Task
from dualrank.version import __version__


@dataclass(frozen=True)
class OracleMode:
    """The whole experiment as plain values."""

    collection: Collection
    recipe: Recipe
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    methods: tuple[str, ...] = tuple(METHODS)
    user: PositionBasedUser = field(default_factory=PositionBasedUser)
    tuned: bool = False

    def __post_init__(self) -> None:
        require_known(self.methods)
        if not self.seeds:
            raise SettingsError("an experiment needs at least one seed")
        self.collection.check_seeds(self.seeds)

    @classmethod
    def preset(cls, name: str, collection: Collection | None = None) -> OracleMode:
        """The experiment of a preset, on generated data unless another collection is given."""
        return cls(collection or Collection(name), recipe_of(name))

    @property
    def tasks(self) -> list[Task]:
        """One task per seed and method."""
        users = Users(training=self.user, randomisation=self.user)
        return [
            Task(self.collection, users, self.recipe.with_seed(seed), method, self.tuned)
            for seed in self.seeds
            for method in self.methods
        ]


def run_oracle_mode(
    experiment: OracleMode,
    *,
    name: str = "oracle-mode",
    jobs: int = 1,
    report: Report | None = None,
    finished: Callable[[], None] | None = None,
    kept: KeptRuns | None = None,
) -> Results:
    """Run every method for every seed and compare them with dual learning."""
    trained = run_tasks(experiment.tasks, jobs=jobs, report=report, finished=finished, kept=kept)
    settings = {
        "data": experiment.collection.describe(experiment.seeds),
        **trained[0].sizes.model_dump(),
        **describe(experiment.recipe),
        "seeds": list(experiment.seeds),
        "tuned": experiment.tuned,
        "eta": experiment.user.eta,
        "epsilon": experiment.user.epsilon,
        "true_examination": truth_of(experiment.user),
        "version": __version__,
    }
    return Results(
        experiment=name,
        settings=settings,
        runs=[result.run for result in trained],
        significance=compare_with_reference(trained, pool=experiment.collection.new_for_every_seed),
    )
