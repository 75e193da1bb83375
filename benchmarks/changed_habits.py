"""Users change their habits under traffic: does the learner follow, and a frozen curve not?

Run as `python -m benchmarks.changed_habits`. Users of a site click with a severity of η = 0.5, and
from one session to the next with 1.5. The learner follows closed segments as it does behind a
service; what it publishes is what users are shown. Beside it a ranker goes on learning from its own
traffic with the curve from before the change. Reported are the largest error of a weight and
nDCG@10 of what is shown, before the change and after a tenth as many sessions as before.

With `--service` users search and click over HTTP at a `dualrank serve --learn` of their own, which
is never waited for but at the end: they change in the midst of a segment. Reported are also nDCG@10
of the lists that were answered, the last of each habit, and the sessions of a second.

`--out FILE` keeps the runs as JSON, `--figure FILE` draws them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dualrank as dr
from benchmarks.live_traffic import DEPTH, Folder, Site
from benchmarks.served_traffic import Seen, serve_sessions
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.online.learner.learner import Learner, LearnerSettings
from dualrank.online.learner.round_clicks import HeldOutQueries, read_round
from dualrank.online.learner_record import LearnerRecord
from dualrank.online.versions import Versions

BEFORE, AFTER = 0.5, 1.5
ROUNDS_BEFORE, ROUNDS_AFTER = 25, 10
GOAL, BACK = 0.1, 0.003
SETTINGS = LearnerSettings()


def write_sessions(
    site: Site,
    first: dr.Model,
    folder: Path,
    plan: Sequence[tuple[float, int]],
    rng: np.random.Generator,
) -> Iterator[Seen]:
    """Write each part of the plan as a closed segment, and let a learner learn it."""
    events = Folder(folder / "events")
    versions = Versions.create(folder / "events" / "_versions", first)
    learner = Learner(versions, events, SETTINGS, site.data)
    for eta, size in plan:
        lists = site.lists(versions.load(versions.live.number))
        events.write(site.sessions(lists, PositionBasedUser(eta=eta), size, rng))
        learner.step()
        last = LearnerRecord.read(versions.folder).rounds[-1]
        yield Seen(last.examination, versions.load(versions.live.number))


def run(
    seed: int, sessions: int, queries: int, method: str, service: bool = False
) -> dict[str, Any]:
    """One seed: what was believed and shown, round by round."""
    site = Site.of(queries, seed)
    rng = np.random.default_rng([seed, 0x_4AB])
    plan = [(BEFORE, sessions // ROUNDS_BEFORE)] * ROUNDS_BEFORE
    plan += [(AFTER, sessions // 10 // ROUNDS_AFTER)] * ROUNDS_AFTER
    began = time.time()
    with tempfile.TemporaryDirectory() as name:
        folder, first = Path(name), site.first_model(seed, method=method)
        if service:
            seen = serve_sessions(site, first, folder, plan, seed)
        else:
            seen = write_sessions(site, first, folder, plan, rng)
        apart = Folder(folder / "frozen")
        rows: list[dict[str, Any]] = []
        frozen, sent = None, 0
        for number, ((eta, size), each) in enumerate(zip(plan, seen, strict=True)):
            user, live = PositionBasedUser(eta=eta), each.live
            truth = user.examination(DEPTH) / user.examination(1)
            sent += size
            row = {
                "sessions": sent,
                "error": np.abs(truth / np.array(each.curve) - 1).tolist(),
                "shown": site.quality(live.predict(site.data)),
                "test": site.test_quality(live),
                **each.counts,
            }
            if number == ROUNDS_BEFORE - 1:
                frozen = live
            elif frozen is not None:
                closed = apart.write(site.sessions(site.lists(frozen), user, size, rng))
                clicks = read_round(apart, [closed], site.data)
                log = clicks.part(HeldOutQueries(SETTINGS.held_out), held=False)
                frozen = frozen.update(
                    log,
                    site.data,
                    method="ipw",
                    propensity=frozen.propensity,
                    validation=0.0,
                    seed=closed,
                )
                row["frozen"] = site.quality(frozen.predict(site.data))
                row["frozen_test"] = site.test_quality(frozen)
            rows.append(row)
        versions = Versions(folder / "events" / "_versions")
        record = LearnerRecord.read(versions.folder)
        states = [each.state for each in versions.note().versions.values()]
    return {
        "seed": seed,
        "method": method,
        "rows": rows,
        "alarms": [each.said for each in record.alarms],
        "rounds": [(each.sessions, each.delay) for each in record.rounds],
        "refused": states.count("refused"),
        "taken_back": states.count("taken back"),
        "seconds": time.time() - began,
    }


def summary(found: dict[str, Any]) -> dict[str, float]:
    """The numbers of a seed that are spoken about."""
    before, after = found["rows"][ROUNDS_BEFORE - 1], found["rows"][-1]
    return {
        "error_before": max(before["error"]),
        "error_after": max(after["error"]),
        "off_by_more": sum(each > GOAL for each in after["error"]),
        "shown_before": before["shown"],
        "shown_after": after["shown"],
        "frozen_after": after["frozen"],
        "test_before": before["test"],
        "test_after": after["test"],
        "frozen_test_after": after["frozen_test"],
    }


def served(found: dict[str, Any]) -> str:
    """What only a service can tell of a seed."""
    rows = found["rows"]
    rate = rows[-1]["sessions"] / sum(row["seconds"] for row in rows)
    delays = [delay for _, delay in found["rounds"]]
    before, after = rows[ROUNDS_BEFORE - 1]["displayed"], rows[-1]["displayed"]
    return (
        f"      answered lists: nDCG@10 {before:.4f} before, {after:.4f} after; "
        f"{rate:,.0f} sessions a second; {len(delays)} rounds, at most {max(delays):.0f} s behind; "
        f"{rows[-1]['late']:,} events late"
    )


def figure(runs: list[dict[str, Any]], path: Path) -> None:
    """Errors of weights and ranking quality over sessions, a thin line for every seed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    fig, (top, below) = plt.subplots(2, 1, figsize=(7, 6), sharex=True)
    for each in runs:
        x = np.array([row["sessions"] for row in each["rows"]]) / 1e6
        worst = [100 * max(row["error"]) for row in each["rows"]]
        top.plot(x, worst, color="#1f77b4", lw=1, alpha=0.8)
        below.plot(x, [row["shown"] for row in each["rows"]], color="#1f77b4", lw=1, alpha=0.8)
        late = [i for i, row in enumerate(each["rows"]) if "frozen" in row]
        frozen = [each["rows"][i]["frozen"] for i in late]
        below.plot(x[late], frozen, color="#d62728", lw=1, alpha=0.8)
    change = runs[0]["rows"][ROUNDS_BEFORE - 1]["sessions"] / 1e6
    for axes in (top, below):
        axes.axvline(change, color="gray", lw=0.8, ls=":")
    top.axhline(100 * GOAL, color="gray", lw=0.8, ls="--")
    top.set_yscale("log")
    top.set_ylabel("largest error of a weight (%)")
    below.set_ylabel("nDCG@10 of what is shown")
    below.set_xlabel("million sessions (dotted: users change)")
    below.plot([], [], color="#1f77b4", label="learner")
    below.plot([], [], color="#d62728", label="goes on with the old curve")
    below.legend(frameon=False)
    fig.tight_layout()
    fig.savefig(path)


def main(words: list[str] | None = None) -> bool:
    """Print the table; true if every seed follows and beats the frozen curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", help="0,1,2,3,4; with --service 0")
    parser.add_argument("--service", action="store_true", help="over HTTP, with a real service")
    parser.add_argument("--sessions", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--method", default="likelihood")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args(words)
    runs, fine = [], True
    print(f"{asked.sessions:,} sessions before, {asked.sessions // 10:,} after; {asked.method}")
    print(
        "seed   weight off by, before  after  (>10%)  nDCG@10 shown: before  after  old curve",
        end="",
    )
    print("  test: before  after  old curve  refused  taken back  alarms  seconds")
    seeds = asked.seeds or ("0" if asked.service else "0,1,2,3,4")
    for seed in map(int, seeds.split(",")):
        each = run(seed, asked.sessions, asked.queries, asked.method, asked.service)
        runs.append(each)
        s = summary(each)
        print(
            f"{seed:>4}{s['error_before']:>24.1%}{s['error_after']:>7.1%}{s['off_by_more']:>8}"
            f"{s['shown_before']:>24.4f}{s['shown_after']:>7.4f}{s['frozen_after']:>11.4f}"
            f"{s['test_before']:>14.4f}{s['test_after']:>7.4f}{s['frozen_test_after']:>11.4f}"
            f"{each['refused']:>9}{each['taken_back']:>12}{len(each['alarms']):>8}"
            f"{each['seconds']:>9.0f}",
            flush=True,
        )
        if asked.service:
            print(served(each), flush=True)
        fine &= s["error_after"] <= GOAL and s["shown_after"] >= s["shown_before"] - BACK
        fine &= s["shown_after"] > s["frozen_after"]
    if asked.out:
        asked.out.write_text(json.dumps(runs))
    if asked.figure:
        figure(runs, asked.figure)
    return fine


if __name__ == "__main__":
    sys.exit(not main())
