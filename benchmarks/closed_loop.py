"""The loop closes: the learner's own rankings make the next log, for twenty generations.

Run as `python -m benchmarks.closed_loop`. Every generation is a segment of sessions on what the
live version shows, and one round of learning; once without and once with exploration, which swaps
one result to the top in a share of the sessions. Reported are nDCG@10 of what is shown and on
queries that nobody asks, the mean error of the curve, and what unseen documents lose: the share of
relevant documents (grade 3 and 4) that no user has ever been shown.

`--out FILE` keeps the runs as JSON, `--figure FILE` draws them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.live_traffic import DEPTH, Folder, Site
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.online.learner.learner import Learner, LearnerSettings
from dualrank.online.learner_record import LearnerRecord
from dualrank.online.versions import Versions

GENERATIONS = 20
USER = PositionBasedUser(eta=1.0)
RELEVANT = 3


def run(seed: int, sessions: int, queries: int, method: str, explore: float) -> dict[str, Any]:
    """One seed, with so much exploration."""
    site = Site.of(queries, seed)
    rng = np.random.default_rng([seed, 0x_100B])
    relevant = site.data.require_grades() >= RELEVANT
    seen = np.zeros(site.data.document_count, dtype=bool)
    truth = USER.examination(DEPTH) / USER.examination(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        first = site.first_model(seed, method=method, eta=1.0)
        versions = Versions.create(Path(folder) / "models", first)
        events = Folder(Path(folder) / "events")
        learner = Learner(versions, events, LearnerSettings(), site.data)
        for _ in range(GENERATIONS):
            live = versions.load(versions.live.number)
            lists = site.lists(live)
            events.write(site.sessions(lists, USER, sessions, rng, explore))
            seen[np.unique(lists.documents[lists.documents >= 0])] = True
            learner.step()
            last = LearnerRecord.read(versions.folder).rounds[-1]
            live = versions.load(versions.live.number)
            rows.append(
                {
                    "shown": site.quality(live.predict(site.data)),
                    "test": site.test_quality(live),
                    "error": float(np.abs(np.array(last.examination) / truth - 1)[1:].mean()),
                    "unseen": float((relevant & ~seen).sum() / relevant.sum()),
                }
            )
        states = [each.state for each in versions.note().versions.values()]
        alarms = [each.kind for each in LearnerRecord.read(versions.folder).alarms]
    return {"seed": seed, "explore": explore, "rows": rows, "refused": states.count("refused"),
            "alarms": len(alarms)}  # fmt: skip


def figure(runs: list[dict[str, Any]], path: Path) -> None:
    """Quality, error of the curve and unseen relevant documents by generation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    fig, axes = plt.subplots(1, 3, figsize=(10, 3.2))
    titles = {"shown": "nDCG@10 of what is shown", "error": "mean error of the curve",
              "unseen": "relevant documents never shown"}  # fmt: skip
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        for each in runs:
            color = "#d62728" if each["explore"] else "#1f77b4"
            x = np.arange(1, len(each["rows"]) + 1)
            ax.plot(x, [row[name] for row in each["rows"]], color=color, lw=1, alpha=0.8)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("generation")
    most = max(each["explore"] for each in runs)
    axes[0].plot([], [], color="#1f77b4", label="no exploration")
    axes[0].plot([], [], color="#d62728", label=f"explore {most:.0%}")
    axes[0].legend(frameon=False, fontsize=8)
    fig.tight_layout()
    fig.savefig(path)


def main(words: list[str] | None = None) -> bool:
    """Print the table; true if quality does not fall and the error of the curve does not grow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--method", default="likelihood")
    parser.add_argument("--explore", type=float, default=0.05)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args(words)
    print(f"{GENERATIONS} generations of {asked.sessions:,} sessions; {asked.method}; means of the")
    print("first and the last five generations")
    print("seed  explore  nDCG@10 shown  test  error of the curve  never shown  refused  alarms")
    runs, fine = [], True
    for seed in map(int, asked.seeds.split(",")):
        for explore in (0.0, asked.explore):
            each = run(seed, asked.sessions, asked.queries, asked.method, explore)
            runs.append(each)
            early, late = (
                {name: float(np.mean([row[name] for row in part])) for name in part[0]}
                for part in (each["rows"][:5], each["rows"][-5:])
            )
            print(
                f"{seed:>4}{explore:>9.0%}  {early['shown']:.4f} {late['shown']:.4f}"
                f"  {early['test']:.4f} {late['test']:.4f}"
                f"  {early['error']:.1%} {late['error']:.1%}"
                f"  {early['unseen']:.1%} {late['unseen']:.1%}{each['refused']:>6}"
                f"{each['alarms']:>6}",
                flush=True,
            )
            fine &= late["shown"] > early["shown"] - 0.003 and late["error"] < early["error"] + 0.01
    if asked.out:
        asked.out.write_text(json.dumps(runs))
    if asked.figure:
        figure(runs, asked.figure)
    return fine


if __name__ == "__main__":
    sys.exit(not main())
