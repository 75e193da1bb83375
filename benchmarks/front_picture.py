"""The picture of the first page: what users clicked, what is learned from it, what it is worth.

Run as `python -m benchmarks.front_picture --figure FILE`. Simulated users of the paper click on
lists of a ranker that saw the grades of 1% of the queries (preset laptop, 500,000 sessions); the
same network learns from their clicks as they are, with dual learning, and from the true grades.
Drawn are clicks on documents of the highest grade by position, the curve that dual learning
learned, and nDCG@10 of queries that nobody trained on; printed are the latter two, by seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.learning import Judgments
from dualrank.report.drawing import EDGE, LEGEND, TEXT, new_figure, title
from dualrank.report.theme import LIGHT, svg_file

DEPTH = 10
SESSIONS = 500_000
USER = dr.PositionBasedUser(eta=1.0)
ROWS = {
    "as displayed": "gray",
    "clicks as they are": "vermilion",
    "dual learning": "blue",
    "true grades": "ink",
}


def run(seed: int) -> dict[str, Any]:
    """One seed: clicks by position, the curve, and the quality of each ranker."""
    data = dr.generate_splits("laptop", seed=seed)
    few = data.train.take(np.arange(len(data.train.lengths) // 100))
    network: dict[str, Any] = {"ranker": dr.DNN(hidden=(128, 64)), "seed": seed}
    judged = Judgments(few, dr.top_lists(few, np.zeros(few.document_count)))
    logging = dr.fit(judged, few, method="naive", ranker=dr.Linear(), validation=0.0)
    lists = dr.top_lists(data.train, logging.predict(data.train), DEPTH)
    log = dr.sample_log(data.train, lists, USER, SESSIONS, seed)
    models = {
        "as displayed": logging,
        "clicks as they are": dr.fit(log, data.train, method="naive", **network),
        "dual learning": dr.fit(log, data.train, method="dla", **network),
        "true grades": dr.fit(Judgments(data.train, lists), data.train, method="naive",
                              validation=data.valid, **network),
    }  # fmt: skip
    learned = models["dual learning"].propensity
    assert learned is not None
    return {
        "clicks": _clicks_on_the_best(log, data.train),
        "curve": learned.examination,
        "ndcg@10": {
            name: dr.evaluate(model.predict(data.test), data.test, "ndcg@10")["ndcg@10"]
            for name, model in models.items()
        },
    }


def _clicks_on_the_best(log: dr.ClickLog, data: dr.Dataset) -> NDArray[np.float64]:
    """The share of sessions in which a document of the highest grade was clicked, by position."""
    grades = log.lists.gather(data.require_grades().astype(np.float32))[log.list_of]
    best = (grades == data.max_grade) * log.counts[:, None]
    return (best * log.clicks).sum(0) / best.sum(0)


def figure(runs: list[dict[str, Any]], path: Path) -> None:
    """Three panels from left to right: clicks, what is learned, what it is worth."""
    drawn, (clicks, curve, worth) = new_figure(3, width=3.6)
    positions = np.arange(1, DEPTH + 1)
    clicks.bar(positions, np.mean([r["clicks"] for r in runs], 0), color=LIGHT["vermilion"])
    title(clicks, "1. Clicks on equally good results")
    truth = USER.examination(DEPTH) / USER.examination(1)
    curve.plot(
        positions, truth, color=LIGHT["ink"], lw=7, alpha=0.27, label="how users really look"
    )
    learned = np.mean([r["curve"] for r in runs], 0)
    curve.plot(positions, learned, "o-", color=LIGHT["blue"], label="learned from clicks", **EDGE)
    curve.legend(loc="upper right", **LEGEND)
    title(curve, "2. Learned: how far users look")
    for ax in (clicks, curve):
        ax.set_xlabel("position")
        ax.set_xticks(positions)
        ax.set_ylim(0, None)
    for y, (name, color) in enumerate(ROWS.items()):
        values = [r["ndcg@10"][name] for r in runs]
        worth.plot(values, [y] * len(values), "o", color=LIGHT[color], alpha=0.35, ms=4)
        worth.plot(np.mean(values), y, "o", color=LIGHT[color], ms=8, **EDGE)
        worth.annotate(f"{np.mean(values):.3f}", (np.mean(values), y), xytext=(0, 9), ha="center",
                       textcoords="offset points", color=LIGHT[color], fontsize=TEXT)  # fmt: skip
    worth.set_yticks(range(len(ROWS)), list(ROWS))
    worth.set_ylim(len(ROWS) - 0.5, -0.7)
    worth.margins(x=0.12)
    worth.grid(axis="x", color=LIGHT["line"], lw=0.8)
    worth.set_xlabel("nDCG@10 on new queries")
    title(worth, "3. Gained: a better order")
    path.write_text(svg_file(drawn))


def main() -> None:
    """Print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    runs = []
    for seed in range(options.seeds):
        runs.append(run(seed))
        row = "  ".join(f"{name} {value:.4f}" for name, value in runs[-1]["ndcg@10"].items())
        print(f"seed {seed}: {row}; curve {runs[-1]['curve'].round(2).tolist()}", flush=True)
    for name in ROWS:
        values = [r["ndcg@10"][name] for r in runs]
        print(f"{name}: {np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}")
    if options.figure is not None:
        figure(runs, options.figure)


if __name__ == "__main__":
    main()
