"""The whole way from a log to scores at growing sizes, each stage within so much memory.

    python -m benchmarks.scaling FOLDER [--millions 1,3,10,30,100] [--limit 4] [--new-lists]
                                        [--shards 16] [--stages reduce,…] [--plot FILE.svg]

makes the log of `benchmarks.many_rows` in FOLDER where it is not there (some 45 MB a million
sessions, ten rows each), and runs the commands as a user would: `reduce --shards`, `propensity`,
`train`, `diagnose`, `rank`. `--limit` is in GiB, page cache included. What was measured is kept in
FOLDER/scaling.jsonl, so that a run goes on where it was interrupted; the table is of all that is
there. The figure is of processor time, which others on the machine change little.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.limited_memory import GIBIBYTE, run_limited
from benchmarks.many_rows import DEPTH, make
from dualrank.report.drawing import LEGEND, new_figure, title
from dualrank.report.theme import LIGHT, svg_file
from dualrank.storage import write_text

STAGES = ("reduce", "propensity", "train", "diagnose", "rank")
COLORS = ("blue", "orange", "green", "vermilion", "purple")


class Way:
    """The commands for a log of one size."""

    def __init__(self, folder: Path, millions: int, shards: int, *, new_lists: bool) -> None:
        self.folder, self.millions, self.shards = folder, millions, shards
        self.kind = "new" if new_lists else "repeated"
        self.work = folder / f"{self.kind}-{millions}"
        self.new_lists = new_lists

    def command(self, stage: str) -> list[str]:
        """What a user would type."""
        log, model = str(self.work / "log"), str(self.work / "model")
        features = str(self.folder / "features.parquet")
        words = {
            "reduce": [
                *(str(self.work / "rows"), "--shards", str(self.shards)),
                *("--features", features, "--out", log),
            ],
            "propensity": [log, "--methods", "harvest-all-pairs,pbm", "--resamples", "20"],
            "train": [log, "--out", model, "--method", "dla", "--no-twin", "--no-diagnosis"],
            "diagnose": [log, "--out", str(self.work / "diagnosis")],
            "rank": [model, features, "--out", str(self.work / "scores.parquet")],
        }
        return [sys.executable, "-m", "dualrank", stage, *words[stage]]

    def prepare(self) -> None:
        """The parts of the log, as links in a folder of their own."""
        rows = self.work / "rows"
        shutil.rmtree(rows, ignore_errors=True)
        rows.mkdir(parents=True)
        for file in make(self.folder, self.millions * 1_000_000, new_lists=self.new_lists):
            os.symlink(file.resolve(), rows / file.name)


def measure(way: Way, stage: str, limit: int) -> dict[str, Any]:
    """Run a stage."""
    if stage == "train":
        shutil.rmtree(way.work / "model", ignore_errors=True)
    (way.work / "scores.parquet").unlink(missing_ok=True)
    run = run_limited(way.command(stage), limit)
    if run.returncode != 0:
        print(run.output, file=sys.stderr)
        sys.exit(f"{stage} of {way.millions} million sessions ended with {run.returncode}")
    size = sum(file.stat().st_size for file in (way.work / "log").rglob("*") if file.is_file())
    return {
        "kind": way.kind,
        "millions": way.millions,
        "stage": stage,
        "seconds": round(run.seconds, 1),
        "processor": round(run.processor, 1),
        "peak": run.peak,
        "limit": limit if run.is_limited else None,
        "log_bytes": size,
        "shards": way.shards,
    }


def table(found: list[dict[str, Any]]) -> None:
    """Print what was measured."""
    titles = ("log", "sessions", "rows", "stage", "seconds", "processor", "own memory")
    print("{:>9} {:>12} {:>14} {:>11} {:>8} {:>9} {:>11}".format(*titles))
    for each in found:
        sessions = each["millions"] * 1_000_000
        print(
            f"{each['kind']:>9} {sessions:>12,} {sessions * DEPTH:>14,} {each['stage']:>11} "
            f"{each['seconds']:>8.1f} {each['processor']:>9.1f} {each['peak'] / GIBIBYTE:>7.2f} GiB"
        )


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """Processor seconds of each stage against sessions, both logarithmic."""
    figure, (ax,) = new_figure(1, height=3.6, width=5.6)
    for stage, color in zip(STAGES, COLORS, strict=True):
        points = sorted((e["millions"], e["processor"]) for e in found if e["stage"] == stage)
        if points:
            ax.loglog(
                *zip(*points, strict=True), color=LIGHT[color], marker="o", lw=1.8, label=stage
            )
    ax.set_xlabel("million sessions of ten documents")
    title(ax, "Processor seconds of each stage")
    ax.minorticks_off()
    for axis, ticks in ((ax.xaxis, (1, 3, 10, 30, 100)), (ax.yaxis, (10, 30, 100, 300, 1000))):
        axis.set_ticks(ticks, [str(tick) for tick in ticks])
    ax.set_ylim(10, 2_500)
    ax.legend(loc="upper left", ncols=3, **LEGEND)
    write_text(path, svg_file(figure))


def main() -> None:
    """Measure what is not there yet, and print everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--millions", default="1,3,10,30,100")
    parser.add_argument("--limit", type=float, default=4.0)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--new-lists", action="store_true")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    kept = options.folder / "scaling.jsonl"
    found = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    kind = "new" if options.new_lists else "repeated"
    for millions in map(int, options.millions.split(",")):
        way = Way(options.folder, millions, options.shards, new_lists=options.new_lists)
        done = {e["stage"] for e in found if (e["kind"], e["millions"]) == (kind, millions)}
        left = [stage for stage in options.stages.split(",") if stage not in done]
        if left:
            way.prepare()
        for stage in left:
            found.append(measure(way, stage, int(options.limit * GIBIBYTE)))
            with kept.open("a") as file:
                file.write(json.dumps(found[-1]) + "\n")
            print(f"{kind}, {millions} million, {stage}: {found[-1]['seconds']} s", flush=True)
    found.sort(key=lambda each: (each["millions"], STAGES.index(each["stage"])))
    table([each for each in found if each["kind"] == kind])
    if options.plot is not None:
        draw([each for each in found if each["kind"] == kind], options.plot)


if __name__ == "__main__":
    main()
