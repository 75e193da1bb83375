"""`dualrank demo` and `dualrank reproduce`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualrank.cli.terminal import (
    Json,
    Seed,
    layer_sizes,
    print_json,
    result_console,
    task_bars,
)
from dualrank.errors import SettingsError

if TYPE_CHECKING:
    from dualrank.report.results import Results

Jobs = Annotated[
    int, typer.Option(help="Processes at a time, one thread each; 0: one per core.", min=0)
]
Out = Annotated[Path, typer.Option("--out", help="The directory for table, figures and report.")]

reproduce = typer.Typer(
    help="Repeat the paper's experiments, with several seeds.", no_args_is_help=True
)


class PositionModel(StrEnum):
    """What dual learning learns about examination."""

    variables = "variables"
    network = "network"
    recurrent = "recurrent"


class Preset(StrEnum):
    """How large an experiment is."""

    tiny = "tiny"
    laptop = "laptop"
    full = "full"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(demo)
    app.add_typer(reproduce, name="reproduce")


def demo(
    out: Out = Path("demo"),
    preset: Annotated[Preset, typer.Option(help="How large.")] = Preset.laptop,
    seed: Seed = 0,
    jobs: Jobs = 0,
    as_json: Json = False,
) -> None:
    """Learn an unbiased ranker from simulated clicks, and compare it with all else.

    Generates web-search-shaped data, simulates users, trains every row of the paper's Table 2, and
    writes table, figures and report.html. Takes one to three minutes on two cores.

    Example: dualrank demo --out demo
    """
    from dataclasses import replace

    from dualrank.reproduce.oracle_mode import OracleMode, run_oracle_mode

    experiment = replace(OracleMode.preset(preset.value), seeds=(seed,))
    command = f"dualrank demo --preset {preset.value} --seed {seed}"
    run = partial(run_oracle_mode, experiment, name="demo")
    _run(experiment.tasks, run, out, jobs, as_json, command)


@reproduce.command("oracle-mode")
def oracle_mode(
    data: Annotated[
        str | None,
        typer.Option(
            help="A public set (yahoo-set1, mslr-web10k, mslr-web30k, istella-s, mq2007, mq2008); "
            "without it data are generated."
        ),
    ] = None,
    root: Annotated[Path | None, typer.Option(help="The folder of the downloaded set.")] = None,
    fold: Annotated[
        str, typer.Option(help="The fold of sets that have several; all: another for every seed.")
    ] = "1",
    preset: Annotated[
        Preset, typer.Option(help="Size of the generated data and of the training.")
    ] = Preset.laptop,
    seeds: Annotated[int, typer.Option(help="How many seeds.", min=1)] = 5,
    tune: Annotated[
        bool, typer.Option("--tune", help="Search the paper's ranges on validation data.")
    ] = False,
    steps: Annotated[int | None, typer.Option(help="Training steps.", min=1)] = None,
    learning_rate: Annotated[float | None, typer.Option(help="The ranker's rate.")] = None,
    propensity_rate: Annotated[
        float | None, typer.Option(help="The propensity model's rate.")
    ] = None,
    optimizer: Annotated[str | None, typer.Option(help="sgd or adagrad.")] = None,
    schedule: Annotated[str | None, typer.Option(help="Rates: linear or constant.")] = None,
    normalisation: Annotated[
        str | None, typer.Option(help="The loss is divided by: sessions or clicks.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Sessions per step.", min=1)] = None,
    metric: Annotated[str | None, typer.Option(help="Keeps the best ranker.")] = None,
    hidden: Annotated[str | None, typer.Option(help="Hidden layers, such as 256,128.")] = None,
    elu_output: Annotated[
        bool, typer.Option("--elu-output", help="The network as the paper prints it.")
    ] = False,
    precision: Annotated[
        str, typer.Option(help="Of matrix products in training: float32 or bfloat16.")
    ] = "float32",
    C: Annotated[float | None, typer.Option("--C", help="The SVM's weight of errors.")] = None,
    position_model: Annotated[
        PositionModel, typer.Option(help="What DLA learns about examination.")
    ] = PositionModel.variables,
    epsilon: Annotated[float, typer.Option(help="The click noise.")] = 0.1,
    eta: Annotated[float, typer.Option(help="The severity of the position bias.")] = 1.0,
    methods: Annotated[
        str | None, typer.Option(help="Only these rows, separated by commas.")
    ] = None,
    world: Annotated[int, typer.Option(help="The seed of the generated world.", min=0)] = 0,
    out: Out = Path("runs/oracle-mode"),
    seed: Seed = 0,
    jobs: Jobs = 0,
    as_json: Json = False,
) -> None:
    """The paper's Table 2: seven rankers, MAP, nDCG and ERR, significance against DLA.

    An experiment that was interrupted goes on with the rows that are missing.

    Example: dualrank reproduce oracle-mode --seeds 5

    Example: dualrank reproduce oracle-mode --data mq2008 --root ~/MQ2008 --seeds 5
    """
    from dataclasses import replace

    from dualrank.clicks.position_based import PositionBasedUser
    from dualrank.reproduce.collection import Collection
    from dualrank.reproduce.oracle_mode import OracleMode, run_oracle_mode

    if (data is None) != (root is None):
        raise SettingsError("--data NAME and --root DIR go together: the set and where it lies")
    choice = Collection(preset.value, world=world)
    if data is not None:
        choice = Collection(data, root, _fold(fold))
    changes: dict[str, Any] = {
        "seeds": tuple(range(seed, seed + seeds)),
        "tuned": tune,
        "user": PositionBasedUser(eta=eta, epsilon=epsilon),
    }
    if methods is not None:
        changes["methods"] = tuple(name.strip() for name in methods.split(","))
    experiment = replace(OracleMode.preset(preset.value, choice), **changes)
    options: dict[str, Any] = {
        "steps": steps,
        "learning_rate": learning_rate,
        "propensity_rate": propensity_rate,
        "optimizer": optimizer,
        "schedule": schedule,
        "normalisation": normalisation,
        "batch_size": batch_size,
        "metric": metric,
    }
    given = {name: value for name, value in options.items() if value is not None}
    recipe = experiment.recipe
    recipe = replace(
        recipe,
        training=replace(recipe.training, **given),
        ranker=replace(
            recipe.ranker,
            elu_output=elu_output,
            precision=precision,  # type: ignore[arg-type]
            hidden=recipe.ranker.hidden if hidden is None else layer_sizes(hidden),
        ),
        C=recipe.C if C is None else C,
        position_model=position_model.value,
    )
    experiment = replace(experiment, recipe=recipe)
    source = f"--preset {preset.value}" + (
        f" --world {world}" if data is None else f" --data {data} --root DIR --fold {fold}"
    )
    words = [f"dualrank reproduce oracle-mode {source} --seeds {seeds} --seed {seed} --eta {eta:g}"]
    words += [f"--{name.replace('_', '-')} {value}" for name, value in given.items()]
    beside = {"hidden": hidden, "C": C, "epsilon": None if epsilon == 0.1 else epsilon}
    words += [f"--{name} {value}" for name, value in beside.items() if value is not None]
    words += [f"--precision {precision}"] * (precision != "float32")
    named = position_model is not PositionModel.variables
    words += [f"--position-model {position_model.value}"] * named
    words += ["--elu-output"] * elu_output + ["--tune"] * tune
    words += [f"--methods {methods}"] if methods else []
    command = " ".join(words)
    _run(experiment.tasks, partial(run_oracle_mode, experiment), out, jobs, as_json, command)


@reproduce.command("realistic-mode")
def realistic_mode(
    preset: Annotated[
        Preset, typer.Option(help="Size of the generated data and of the training.")
    ] = Preset.laptop,
    seeds: Annotated[int, typer.Option(help="How many seeds.", min=1)] = 5,
    etas: Annotated[
        str | None, typer.Option(help="Severities in training, separated by commas.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps.", min=1)] = None,
    world: Annotated[int, typer.Option(help="The seed of the generated world.", min=0)] = 0,
    out: Out = Path("runs/realistic-mode"),
    seed: Seed = 0,
    jobs: Jobs = 0,
    as_json: Json = False,
) -> None:
    """The paper's Figures 1 and 2: users have changed since their examination was measured.

    Propensities are measured at severity 1, clicks in training come at others.

    Example: dualrank reproduce realistic-mode --seeds 5
    """
    from dataclasses import replace

    from dualrank.reproduce.collection import Collection
    from dualrank.reproduce.realistic_mode import RealisticMode, run_realistic_mode

    experiment = RealisticMode.preset(preset.value, Collection(preset.value, world=world))
    experiment = replace(experiment, seeds=tuple(range(seed, seed + seeds)))
    command = (
        f"dualrank reproduce realistic-mode --preset {preset.value} --world {world} "
        f"--seeds {seeds} --seed {seed}"
    )
    if etas is not None:
        experiment = replace(experiment, etas=_numbers(etas))
        command += f" --etas {etas}"
    if steps is not None:
        training = replace(experiment.recipe.training, steps=steps)
        experiment = replace(experiment, recipe=replace(experiment.recipe, training=training))
        command += f" --steps {steps}"
    _run(experiment.tasks, partial(run_realistic_mode, experiment), out, jobs, as_json, command)


@reproduce.command("drift")
def drift(
    preset: Annotated[
        Preset, typer.Option(help="Size of the generated data and of the training.")
    ] = Preset.laptop,
    seeds: Annotated[int, typer.Option(help="How many seeds.", min=1)] = 5,
    before: Annotated[float, typer.Option(help="The severity at first.", min=0)] = 0.5,
    after: Annotated[float, typer.Option(help="The severity after the jump.", min=0)] = 1.5,
    steps: Annotated[int | None, typer.Option(help="Training steps.", min=1)] = None,
    learning_rate: Annotated[float | None, typer.Option(help="The ranker's rate.")] = None,
    propensity_rate: Annotated[
        float | None, typer.Option(help="The propensity model's rate.")
    ] = None,
    sessions_per_list: Annotated[
        int | None, typer.Option(help="Users who look at a list each time it is drawn.", min=1)
    ] = None,
    world: Annotated[int, typer.Option(help="The seed of the generated world.", min=0)] = 0,
    out: Out = Path("runs/drift"),
    seed: Seed = 0,
    jobs: Jobs = 0,
    as_json: Json = False,
) -> None:
    """Users change during training: the severity jumps, stays, and goes back slowly.

    Dual learning follows the clicks; propensities measured before the jump do not. Weights and
    ranking quality are recorded all along.

    Example: dualrank reproduce drift --seeds 5
    """
    from dataclasses import replace

    from dualrank.reproduce.collection import Collection
    from dualrank.reproduce.drift import Drift, Severity, run_drift

    experiment = Drift.preset(preset.value, Collection(preset.value, world=world))
    rates = {"steps": steps, "learning_rate": learning_rate, "propensity_rate": propensity_rate}
    given: dict[str, Any] = {name: value for name, value in rates.items() if value is not None}
    recipe = replace(
        experiment.recipe,
        training=replace(experiment.recipe.training, **given),
        sessions_per_list=sessions_per_list or experiment.recipe.sessions_per_list,
    )
    experiment = replace(
        experiment,
        recipe=recipe,
        seeds=tuple(range(seed, seed + seeds)),
        severity=Severity(before, after),
    )
    words = [f"dualrank reproduce drift --preset {preset.value} --world {world} --seeds {seeds}"]
    words += [f"--seed {seed} --before {before:g} --after {after:g}"]
    words += [f"--{name.replace('_', '-')} {value}" for name, value in given.items()]
    words += [f"--sessions-per-list {sessions_per_list}"] if sessions_per_list else []
    run = partial(run_drift, experiment)
    _run(experiment.tasks, run, out, jobs, as_json, " ".join(words))


@reproduce.command("scenarios")
def scenarios(
    preset: Annotated[Preset, typer.Option(help="Size of the generated data.")] = Preset.laptop,
    seeds: Annotated[int, typer.Option(help="How many seeds.", min=1)] = 5,
    only: Annotated[
        str | None, typer.Option(help="Only these scenarios, separated by commas.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps.", min=1)] = None,
    world: Annotated[int, typer.Option(help="The seed of the generated world.", min=0)] = 0,
    out: Out = Path("runs/scenarios"),
    seed: Seed = 0,
    jobs: Jobs = 0,
    as_json: Json = False,
) -> None:
    """Logs on which dual learning is right, and on which it is not.

    Each scenario is a log of some ranker and some users. Rankers are trained on it without
    correction, with the true propensities, by dual learning, and by auto, which chooses; and
    diagnose is asked what it makes of the log.

    Example: dualrank reproduce scenarios --seeds 3 --only initial-ranker,network-logger
    """
    from dataclasses import replace

    from dualrank.report.scenarios import scenario_sheet, write_scenarios
    from dualrank.reproduce.collection import Collection
    from dualrank.reproduce.scenarios import Scenarios, run_scenarios

    experiment = Scenarios(Collection(preset.value, world=world))
    experiment = replace(experiment, seeds=tuple(range(seed, seed + seeds)))
    if only is not None:
        chosen = tuple(name.strip() for name in only.split(","))
        experiment = replace(experiment, names=chosen)
    if steps is not None:
        settings = replace(experiment.settings, steps=steps)
        experiment = replace(experiment, settings=settings)
    with task_bars([str(play) for play in experiment.plays]) as (report, finished):
        results = run_scenarios(
            experiment, jobs=jobs or os.cpu_count() or 1, report=report, finished=finished
        )
    words = [f"dualrank reproduce scenarios --preset {preset.value} --world {world}"]
    words += [f"--seeds {seeds} --seed {seed}"]
    words += [f"--only {only}"] * (only is not None) + [f"--steps {steps}"] * (steps is not None)
    results.settings["command"] = " ".join(words)
    files = write_scenarios(results, out)
    if as_json:
        print_json(results.model_dump(mode="json"))
        return
    scenario_sheet(results).show(result_console(), files)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError as error:
        raise SettingsError(f"--etas takes numbers separated by commas, not {text!r}") from error


def _fold(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal():
        raise SettingsError(f"--fold takes a number from 1 or all, not {text!r}")
    return int(text)


def _run(
    tasks: Sequence[object],
    run: Callable[..., Results],
    out: Path,
    jobs: int,
    as_json: bool,
    command: str,
) -> None:
    from dualrank.report.directory import write_experiment

    with followed(tasks, out) as options:
        results = run(jobs=jobs or os.cpu_count() or 1, **options)
        results.settings["command"] = command
        files = write_experiment(results, out)
    _show(results, files, as_json)


@contextmanager
def followed(tasks: Sequence[object], out: Path) -> Iterator[dict[str, Any]]:
    """Bars for tasks, and a place that keeps finished ones until all is written."""
    from dualrank.reproduce.kept_runs import KeptRuns

    kept = KeptRuns(out / "unfinished")
    with task_bars([str(task) for task in tasks]) as (report, finished):
        yield {"report": report, "finished": finished, "kept": kept}
    kept.clear()


def _show(results: Results, files: list[Path], as_json: bool) -> None:
    if as_json:
        print_json(results.model_dump(mode="json"))
        return
    from dualrank.report.console import print_report

    print_report(results, result_console(), files)
