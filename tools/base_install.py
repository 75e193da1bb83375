"""dualrank as `pip install dualrank` alone brings it: what runs, and what says how to get more."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Protocol, get_args

from dualrank.extras import Extra, install_lines
from dualrank.version import __version__


class Run(Protocol):
    """Runs `dualrank` with these words, which must end with the code: all that it prints."""

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run it."""


class Step(Protocol):
    """Says what is done while it is."""

    def __call__(self, what: str) -> AbstractContextManager[None]:
        """Begin it."""


LOG_TO_RANKING = (
    "generate data/ --preset tiny",
    "simulate data/train.txt --out clicks.parquet --sessions 20000",
    "diagnose clicks.parquet",
    "train clicks.parquet --features data/train.txt --out model/ --method dla --steps 200",
    "rank model/ data/test.txt --out scores.parquet",
    "evaluate model/ data/test.txt",
)
"""The way of a log, one command after the other."""

WANTING: dict[Extra, str] = {
    "charts": "clicks compare clicks.parquet --models pbm --figure models.svg",
    "chinese": "index demo/report.html --out index/ --chinese",
    "onnx": "export model/ --to onnx --out model.onnx",
    "pages": "index demo/report.html --out index/",
    "redis": "learn versions/ --events events/ --from redis://localhost:1/0",
    "serve": "serve model/ --events events/",
    "spark": "reduce clicks.parquet --out reduced.parquet --engine spark",
    "tensorboard": "train clicks.parquet --features data/train.txt --out other/ --tensorboard",
    "trees": "train clicks.parquet --features data/train.txt --out other/ --ranker trees",
}
"""A command that wants each extra, after the way of a log."""


def try_base_install(run: Run, step: Step) -> None:
    """Leave with a sentence where something does not run, or does not say what it wants."""
    with step("dualrank --version and --help"):
        if run("--version").strip() != f"dualrank {__version__}":
            sys.exit(f"dualrank --version says {run('--version').strip()}")
        run("--help")
    with step("dualrank demo --preset tiny"):
        run("demo", "--preset", "tiny", "--out", "demo")
    with step("a log becomes a ranking: generate, simulate, diagnose, train, rank, evaluate"):
        for line in LOG_TO_RANKING:
            run(*line.split())
    with step("what wants an extra says how to get it"):
        for extra in get_args(Extra):
            said = run(*WANTING[extra].split(), code=2)
            if install_lines(extra) not in said:
                sys.exit(f"dualrank {WANTING[extra]}\ndoes not name the extra {extra}:\n{said}")
