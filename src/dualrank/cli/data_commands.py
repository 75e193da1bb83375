"""`dualrank generate` and `dualrank simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualrank.cli.options import imports
from dualrank.cli.outputs import GENERATED, NewFile
from dualrank.cli.terminal import Json, MaxGrade, Seed, answer, one_bar

if TYPE_CHECKING:
    from dualrank.data.generator import PresetName


@imports("dualrank.data.generator:PresetName")
def generate(
    out: Annotated[Path, typer.Argument(help="The directory to write to."), GENERATED],
    preset: Annotated[PresetName, typer.Option(help="How many queries and features.")] = "laptop",
    world: Annotated[int, typer.Option(help="The seed of the world.", min=0)] = 0,
    compress: Annotated[bool, typer.Option("--compress", help="Write .txt.zst files.")] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write web-search-shaped data as LETOR text: train.txt, valid.txt, test.txt.

    Example: dualrank generate data/ --preset tiny
    """
    from dualrank.data.generator import generate_splits, with_document_ids
    from dualrank.data.letor.writer import write_letor

    written = {}
    with one_bar("generating") as report:
        splits = generate_splits(preset, seed=seed, world=world)
        for done, name in enumerate(("train", "valid", "test"), start=1):
            part = getattr(splits, name)
            path = out / f"{name}.txt{'.zst' if compress else ''}"
            write_letor(with_document_ids(part), path)
            written[str(path)] = {"queries": len(part), "documents": part.document_count}
            report(done, 3)
    sizes = ((path, of["queries"], of["documents"]) for path, of in written.items())
    answer(as_json, written, *(f"{path}: {q} queries, {d} documents" for path, q, d in sizes))


def simulate(
    data: Annotated[Path, typer.Argument(help="LETOR text with grades.")],
    out: Annotated[
        Path, typer.Option("--out", help="The click log to write (.parquet)."), NewFile("a log")
    ],
    sessions: Annotated[int, typer.Option(help="How many sessions.", min=1)] = 100_000,
    click_model: Annotated[
        str,
        typer.Option(
            help="How users click: pbm, pbm-trust, cascade, dcm, ccm, ubm, sdbn, dbn, "
            "or a JSON file with a user of your own."
        ),
    ] = "pbm",
    eta: Annotated[
        float | None, typer.Option(help="The severity of the position bias (1), for pbm.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="The click noise (0.1).")] = None,
    depth: Annotated[int, typer.Option(help="Documents per list.", min=1, max=10)] = 10,
    rankings: Annotated[
        int, typer.Option(help="Lists per query: more than one adds noise to the scores.", min=1)
    ] = 1,
    max_grade: MaxGrade = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write a click log: lists of an initial ranker, clicks of simulated users.

    The initial ranker is a Ranking SVM on the grades of 1% of the queries. The log has one row per
    displayed document: session_id, query_id, doc_id, position, clicked.

    A user file holds what differs from the default: {"model": "dbn", "continuation": 0.8}.

    Example: dualrank simulate data/train.txt --out clicks.parquet --sessions 200000
    """
    import numpy as np

    from dualrank.clicks.sampling import sample_log
    from dualrank.clicks.users import find_user
    from dualrank.data.letor.reader import read_letor
    from dualrank.data.log.long import write_long_log
    from dualrank.reproduce.simulation import rank_initially
    from dualrank.storage import require_suffix

    require_suffix(out, "a log", ".parquet")
    habits = {"eta": eta, "epsilon": epsilon}
    user = find_user(
        click_model, **{name: value for name, value in habits.items() if value is not None}
    )
    with one_bar(f"reading {data.name}") as report:
        dataset = read_letor(data, max_grade=max_grade, progress=report)
    with one_bar("simulating") as report:
        lists = rank_initially(dataset, seed, depth=depth, rankings=rankings)
        report(1, 3)
        rng = np.random.default_rng([seed, 0x_C11C])
        log = sample_log(dataset, lists, user, sessions, rng)
        report(2, 3)
        write_long_log(log, out, dataset.catalogue, rng)
    clicks = int(log.clicks_per_list.sum())
    answer(
        as_json,
        {"sessions": sessions, "lists": len(lists), "clicks": clicks, "log": str(out)},
        f"{out}: {sessions} sessions on {len(lists)} lists, {clicks} clicks",
    )
