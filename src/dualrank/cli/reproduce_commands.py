"""`dualrank demo`, the experiments of `dualrank reproduce`, and `dualrank generate-web`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dualrank.cli.options import add_command, imports
from dualrank.cli.outputs import EXPERIMENT, GENERATED
from dualrank.cli.terminal import (
    Json,
    Seed,
    answer,
    one_bar,
    print_json,
    result_console,
    task_bars,
    typed_command,
)
from dualrank.reproduce.experiments import EXPERIMENTS

if TYPE_CHECKING:
    from dualrank.reproduce.experiment import Experiment

Jobs = Annotated[
    int, typer.Option(help="Processes at a time, one thread each; 0: one per core.", min=0)
]
Out = Annotated[
    Path, typer.Option("--out", help="The directory for table, figures and report."), EXPERIMENT
]

reproduce = typer.Typer(
    help="Repeat the paper's experiments, with several seeds.", no_args_is_help=True
)


def add_to(app: typer.Typer) -> None:
    """Register the commands; the options of an experiment are its fields."""
    add_command(app, demo)
    app.add_typer(reproduce, name="reproduce")
    add_command(app, generate_web, "generate-web")
    for name, (place, about) in EXPERIMENTS.items():
        add_command(reproduce, _command(name, place), name, about)


def demo(
    out: Out = Path("demo"),
    preset: Annotated[
        Literal["tiny", "laptop", "full"], typer.Option(help="How large.")
    ] = "laptop",
    seed: Seed = 0,
    jobs: Jobs = 0,
    as_json: Json = False,
) -> None:
    """Learn an unbiased ranker from simulated clicks, and compare it with all else.

    Generates web-search-shaped data, simulates users, trains every row of the paper's Table 2, and
    writes table, figures and report.html. Takes one to three minutes on two cores.

    Example: dualrank demo --out demo
    """
    from dualrank.reproduce.oracle_mode import Demo

    _run(Demo(preset=preset, seed=seed, seeds=1), out, jobs, as_json)


def generate_web(
    out: Annotated[Path, typer.Argument(help="The directory to write to."), GENERATED],
    sessions: Annotated[int, typer.Option(help="Sessions per list, on average.", min=1)] = 20,
    user: Annotated[
        str, typer.Option(help="Who clicks: mixed, or pbm, ubm, dbn, dcm, cascade, pbm-trust, …")
    ] = "mixed",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write a small generated web with a click log, in the formats of your own data.

    pages.jsonl, queries.tsv, clicks.parquet and judgments.qrels: what `dualrank index`, `features`
    and `reproduce click-models` read, to try them before your own data are there.

    Example: dualrank generate-web web/
    """
    from dualrank.reproduce.search_engine import Log
    from dualrank.reproduce.web_files import write_web

    with one_bar("generating") as report:
        counts = write_web(out, log=Log(sessions, popularity=True), population=user, seed=seed)
        report(1, 1)
    parts = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    answer(as_json, {"folder": str(out)} | counts, f"{out}: {parts}")


def _command(name: str, place: str) -> Callable[..., None]:
    """The command of an experiment, whose class says what its options are and what it does."""

    @imports(place)
    def command(
        *,
        experiment: Experiment,
        out: Out = Path("runs") / name,
        jobs: Jobs = 0,
        as_json: Json = False,
    ) -> None:
        _run(experiment, out, jobs, as_json)

    command.__annotations__["experiment"] = place.partition(":")[2]
    return command


def _run(experiment: Experiment, out: Path, jobs: int, as_json: bool) -> None:
    """Run an experiment, write its files, and print what it found."""
    from dualrank.reproduce.runner import run

    with one_bar("preparing") as report:
        experiment = experiment.prepared(out, report)
    with task_bars([str(task) for task in experiment.tasks()]) as (follow, finished):
        done = run(
            experiment,
            out,
            jobs=jobs or os.cpu_count() or 1,
            report=follow,
            finished=finished,
            command=typed_command(),
        )
    if not as_json:
        done.sheet.show(result_console(), done.files)
        return
    first, *others = (each.model_dump(mode="json") for each in done.results.values())
    names = [name.replace("-", "_") for name in list(done.results)[1:]]
    print_json(first | dict(zip(names, others, strict=True)))
