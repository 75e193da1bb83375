"""`dualrank reproduce click-models` and `dualrank generate-web`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualrank.cli.pages_commands import warn_of_extraction
from dualrank.cli.reproduce_commands import Jobs, Out, followed, reproduce
from dualrank.cli.terminal import Json, Seed, one_bar, print_json, result_console
from dualrank.errors import SettingsError

if TYPE_CHECKING:
    from dualrank.reproduce.own_log import OwnLog
    from dualrank.reproduce.text_collection import TextCollection


Stemmer = Annotated[
    str | None, typer.Option(help="Cut words to their stems, such as english, german, russian.")
]
StopWords = Annotated[bool, typer.Option("--stop-words", help="Leave English stop words out.")]
Chinese = Annotated[
    bool, typer.Option("--chinese", help="Cut Chinese into words (extra dualrank\\[chinese]).")
]


def add_to(app: typer.Typer) -> None:
    """Register the commands, the first in the group that `experiments` made."""
    reproduce.command("click-models")(click_models)
    app.command("generate-web")(generate_web)


def click_models(
    data: Annotated[
        str, typer.Option(help="small-web (generated), msrd-movies, nfcorpus or stanford-web.")
    ] = "small-web",
    root: Annotated[
        Path | None,
        typer.Option(envvar="DUALRANK_DATA", help="The folder above the public collections."),
    ] = None,
    pages: Annotated[Path | None, typer.Option(help="Your own pages.")] = None,
    queries: Annotated[Path | None, typer.Option(help="Your own queries.")] = None,
    log: Annotated[Path | None, typer.Option(help="Your own click log.")] = None,
    judgments: Annotated[
        Path | None, typer.Option(help="Grades of pages for some queries: query_id, doc_id, grade.")
    ] = None,
    stemmer: Stemmer = None,
    stop_words: StopWords = False,
    chinese: Chinese = False,
    min_sessions: Annotated[
        int, typer.Option(help="Leave out lists of your log with fewer sessions.", min=1)
    ] = 10,
    user: Annotated[
        str, typer.Option(help="Who clicks: mixed, or pbm, ubm, dbn, dcm, cascade, pbm-trust, …")
    ] = "mixed",
    table_sessions: Annotated[
        int, typer.Option(help="Sessions per list in the log of Table 3, on average.", min=1)
    ] = 50,
    sessions: Annotated[
        str, typer.Option(help="Sessions per list of further logs, separated by commas; or none.")
    ] = "2,10,50,250",
    methods: Annotated[
        str | None, typer.Option(help="Only these rows, separated by commas.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps.", min=1)] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds.", min=1)] = 5,
    out: Out = Path("runs/click-models"),
    seed: Seed = 0,
    jobs: Jobs = 0,
    as_json: Json = False,
) -> None:
    """The paper's Table 3: dual learning against click models, from web pages and a click log.

    Without own data, on a generated web with simulated users of several kinds; with --pages,
    --queries, --log and --judgments on yours. Simulated logs have queries that are asked often and
    rarely, reported apart; further logs have equally many --sessions on every list, to show how
    many of them click models need.

    Example: dualrank reproduce click-models --seeds 5

    Example: dualrank reproduce click-models --pages crawl/ --queries queries.tsv
    --log clicks.parquet --judgments judgments.tsv
    """
    from dataclasses import replace

    from dualrank.report.by_sessions import crossings, sessions_table
    from dualrank.report.console import print_report
    from dualrank.report.head_and_tail import head_and_tail
    from dualrank.report.table_3 import write_table_3
    from dualrank.reproduce.own_log import MIN_SESSIONS, OwnLog, extract_own
    from dualrank.reproduce.table_3 import (
        METHODS,
        RECIPE,
        WITHOUT_GRADES,
        ClickModels,
        run_click_models,
    )
    from dualrank.reproduce.text_collection import TextCollection

    own = {"--pages": pages, "--queries": queries, "--log": log, "--judgments": judgments}
    words = ["dualrank reproduce click-models"]
    collection: TextCollection | OwnLog
    if pages and queries and log and judgments:
        from dualrank.pages.tokens import Tokeniser

        tokeniser = Tokeniser(stemmer, stop_words, chinese)
        features = out / "features.parquet"
        with one_bar(f"reading {pages.name}") as report:
            found = extract_own(pages, queries, log, judgments, tokeniser, report)
        warn_of_extraction(found)
        found.write(features)
        collection = OwnLog.of(features, log, judgments, min_sessions)
        words += [f"{name} {path}" for name, path in own.items()]
        words += [f"--stemmer {stemmer}"] * (stemmer is not None)
        words += ["--stop-words"] * stop_words + ["--chinese"] * chinese
        words += [f"--min-sessions {min_sessions}"] * (min_sessions != MIN_SESSIONS)
    elif any(own.values()):
        missing = ", ".join(name for name, path in own.items() if path is None)
        raise SettingsError(f"own data are pages, queries, log and judgments; give also {missing}")
    else:
        collection = TextCollection(data, None if data == "small-web" else root)
        words += [f"--data {data} --user {user} --table-sessions {table_sessions}"]
        words += [f"--sessions {sessions}"]
    known = WITHOUT_GRADES if isinstance(collection, OwnLog) else METHODS
    recipe = RECIPE
    if steps is not None:
        recipe = replace(recipe, training=replace(recipe.training, steps=steps))
        words.append(f"--steps {steps}")
    experiment = ClickModels(
        collection,
        user,
        recipe,
        tuple(range(seed, seed + seeds)),
        tuple(name.strip() for name in methods.split(",")) if methods else known,
        table_sessions,
        _sizes(sessions),
    )
    words += [f"--methods {methods}"] if methods else []
    command = " ".join([*words, f"--seeds {seeds} --seed {seed}"])
    with followed(experiment.tasks, out) as options:
        table, by_sessions = run_click_models(
            experiment, jobs=jobs or os.cpu_count() or 1, **options
        )
        table.settings["command"] = command
        if by_sessions is not None:
            by_sessions.settings["command"] = command
        files = write_table_3(table, by_sessions, out)
    if as_json:
        content: dict[str, Any] = table.model_dump(mode="json")
        if by_sessions is not None:
            content["by_sessions"] = by_sessions.model_dump(mode="json")
        print_json(content)
        return
    console = result_console()
    if (parts := head_and_tail(table)) is not None:
        console.print("Logged queries that are asked most (head) and least (tail)")
        console.print(parts.rich(console.width))
        console.print()
    if by_sessions is not None:
        console.print("nDCG@10 by sessions per list")
        console.print(sessions_table(by_sessions).rich(console.width))
        console.print(" ".join(crossings(by_sessions)) + "\n")
    print_report(table, console, files)


def generate_web(
    out: Annotated[Path, typer.Argument(help="The directory to write to.")],
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
    from dualrank.reproduce.table_3 import Log
    from dualrank.reproduce.web_files import write_web

    with one_bar("generating") as report:
        counts = write_web(out, log=Log(sessions, popularity=True), population=user, seed=seed)
        report(1, 1)
    if as_json:
        print_json({"folder": str(out)} | counts)
        return
    parts = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    typer.echo(f"{out}: {parts}")


def _sizes(text: str) -> tuple[int, ...]:
    if text == "none":
        return ()
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError as error:
        raise SettingsError(
            f"--sessions takes whole numbers separated by commas, or none, not {text!r}"
        ) from error
