"""How long a version that is worse on purpose stays live, and how often a good one is refused.

Run as `python -m benchmarks.worse_version`. A learner follows a site for some rounds. Then a model
that was trained on inverted clicks (what is relevant is not clicked) is offered to the gate, and
put live by hand although it was refused: counted are the sessions until it is taken back, once with
the clicks remembered from before, and once by a learner that remembers none. The rounds before, in
which every version learned from honest clicks, tell how often the gate errs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

import dualrank as dr
from benchmarks.live_traffic import Folder, Site
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.online.learner.learner import Learner, LearnerSettings
from dualrank.online.learner.learner_state import LearnerState
from dualrank.online.versions import Versions

ROUNDS, SESSIONS = 10, 5_000
SMALL = 500
"""Sessions of a segment while the worse version is live."""
MOST = 40
USER = PositionBasedUser(eta=1.0)


class Contrary(PositionBasedUser):
    """Users who click what is not relevant."""

    def perceived_relevance(self, grades, max_grade):  # type: ignore[no-untyped-def]
        """What is relevant to others is not to them."""
        return 1.1 - super().perceived_relevance(grades, max_grade)


def worse_model(site: Site, seed: int, method: str) -> dr.Model:
    """A model of inverted clicks."""
    from dualrank.reproduce.simulation import rank_initially

    lists = rank_initially(site.data, seed)
    log = dr.sample_log(site.data, lists, Contrary(eta=1.0), 20_000, seed=seed)
    return dr.fit(
        log, site.data, method=method, ranker=dr.DNN((64, 32)), steps=600, validation=0, seed=seed
    )


def run(seed: int, queries: int, method: str) -> dict[str, float]:
    """One seed."""
    site = Site.of(queries, seed)
    rng = np.random.default_rng([seed, 0x_BAD])
    with tempfile.TemporaryDirectory() as folder:
        first = site.first_model(seed, method=method, eta=1.0)
        versions = Versions.create(Path(folder) / "models", first)
        events = Folder(Path(folder) / "events")
        settings = LearnerSettings()
        learner = Learner(versions, events, settings, site.data)

        def traffic(count: int) -> None:
            live = versions.load(versions.live.number)
            events.write(site.sessions(site.lists(live), USER, count, rng))

        for _ in range(ROUNDS):
            traffic(SESSIONS)
            learner.step()
        states = [each.state for each in versions.note().versions.values()]
        good, worse = versions.live.number, worse_model(site, seed, method)
        qualities = [site.quality(each.predict(site.data)) for each in (versions.load(good), worse)]
        offered = learner.offer(worse, "trained on inverted clicks")

        def sessions_until_taken_back(learner: Learner) -> int:
            if versions.live.number != offered.number:
                versions.roll_back("put live by hand", to=offered.number)
            live = 0
            for _ in range(MOST):
                learner.step()
                if versions.live.number != offered.number:
                    return live
                traffic(SMALL)
                live += SMALL
            return live

        remembering = sessions_until_taken_back(learner)
        # A learner that has nothing remembered: its state says that nothing was learned yet.
        closed = max(events.closed())
        live = versions.live.number
        LearnerState(live, live, learned=closed).write(versions.folder)
        fresh = sessions_until_taken_back(Learner(versions, events, settings, site.data))
    return {
        "good": qualities[0],
        "worse": qualities[1],
        "refused": states.count("refused"),
        "taken back": states.count("taken back"),
        "offered": float(offered.state == "refused"),
        "remembering": remembering,
        "fresh": fresh,
    }


def main(words: list[str] | None = None) -> bool:
    """Print the table; true if the worse version is refused everywhere, and always taken back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--method", default="likelihood")
    asked = parser.parse_args(words)
    print(
        f"{ROUNDS} honest rounds of {SESSIONS:,} sessions; then segments of {SMALL}; {asked.method}"
    )
    print("seed  nDCG@10 good  worse  honest: refused  taken back  worse offered: refused", end="")
    print("  forced: sessions live  without memory")
    fine = True
    for seed in map(int, asked.seeds.split(",")):
        s = run(seed, asked.queries, asked.method)
        print(
            f"{seed:>4}{s['good']:>14.4f}{s['worse']:>7.4f}{s['refused']:>17.0f}"
            f"{s['taken back']:>12.0f}{'yes' if s['offered'] else 'NO':>24}"
            f"{s['remembering']:>23,.0f}{s['fresh']:>16,.0f}",
            flush=True,
        )
        fine &= bool(s["offered"]) and max(s["remembering"], s["fresh"]) < MOST * SMALL
    return fine


if __name__ == "__main__":
    sys.exit(not main())
