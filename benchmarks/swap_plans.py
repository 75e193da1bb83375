"""Whether swaps that were planned on a plain log give the precision that the plan promised.

    python -m benchmarks.swap_plans [--seeds 20] [--first-seed 0]

On generated data (8,000 queries, ten results, an initial ranker that was trained on 1% of them) the
paper's users click 300,000 times through lists that never change: all that a plan is made from. For
each design the planned sessions are then simulated, the curve is estimated as the plan says, and

- *ratio* is the half width of its 95% intervals over the one planned, on the logarithmic scale: the
  mean over seeds and positions, and the least and the largest of any position, each a mean over
  seeds;
- *widest* is how far the widest interval reaches, of those that all are to reach as far as
  *planned*: as an interval is itself estimated, the widest of nine reaches somewhat farther;
- *spread* is the same ratio for the errors themselves: the standard deviation over seeds of
  log ê_k − log e_k, over the standard error planned, as the root of the mean square over positions;
- *covered* is the share of intervals that hold the truth;
- *lost* are the clicks that the plan says are lost at most, and those that users as they are lose
  in expectation, per 1,000 sessions.

Where documents move by themselves, which the plan does not count, more is achieved than planned.
Elsewhere the ratio of every position must be within 15% of 1; exits with 1 where it is not.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.data.interventions import shuffle_lists
from dualrank.data.lists import RankedLists
from dualrank.propensity import estimate
from dualrank.propensity.swap_plan import PlannedDesign
from dualrank.reproduce.simulation import rank_initially

LOGGED = 300_000
ALLOWED = 0.15

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """Who clicks, who ranks, how often queries are asked, and the precision that is wanted.

    `zipf`: the n-th query is asked in proportion to 1/n. A `strong` ranker sees grades through
    noise. With several `rankings` documents move by themselves.
    """

    title: str
    eta: float = 1.0
    precision: float = 0.10
    zipf: bool = False
    strong: bool = False
    rankings: int = 1

    def lists(self, data: dr.Dataset, seed: int) -> RankedLists:
        """What is displayed."""
        if not self.strong:
            return rank_initially(data, seed, rankings=self.rankings)
        noise = np.random.default_rng([seed, 0x_5A8]).normal(size=data.document_count)
        return dr.top_lists(data, data.require_grades() + noise)

    def traffic(self, lists: RankedLists) -> Floats:
        """How often each list is shown, in the mean."""
        return 1.0 / (1 + lists.queries) if self.zipf else np.ones(len(lists))


SETTINGS = (
    Setting("η = 1"),
    Setting("η = 1", precision=0.20),
    Setting("η = 0.5", eta=0.5),
    Setting("η = 1.5", eta=1.5, precision=0.20),
    Setting("Zipf queries", zipf=True),
    Setting("strong logger", strong=True),
    Setting("three rankings", rankings=3),
)


def variants(
    lists: RankedLists, traffic: Floats, design: PlannedDesign
) -> tuple[RankedLists, Floats]:
    """Every list as it is and with every exchange, and how often each is shown."""
    documents, queries, weights = [lists.documents], [lists.queries], [traffic.copy()]
    for name, share in design.shares.items():
        i, j = (int(position) - 1 for position in name.split("-"))
        long = np.flatnonzero(lists.mask[:, j])
        swapped = lists.documents[long]
        swapped[:, [i, j]] = swapped[:, [j, i]]
        documents.append(swapped)
        queries.append(lists.queries[long])
        weights.append(share * traffic[long])
        weights[0][long] -= weights[-1]
    shown = RankedLists(np.concatenate(documents), np.concatenate(queries))
    return shown, np.concatenate(weights)


def experiment(
    data: dr.Dataset,
    lists: RankedLists,
    traffic: Floats,
    user: dr.PositionBasedUser,
    design: PlannedDesign,
    rng: np.random.Generator,
) -> tuple[dr.ClickLog, float]:
    """The log of a planned design, and the clicks that 1,000 sessions lose in expectation."""

    def clicks_on(shown: RankedLists) -> Floats:
        grades = shown.gather(data.require_grades())
        return user.click_probabilities(grades, shown.mask, data.max_grade)

    before = np.average(clicks_on(lists).sum(axis=1), weights=traffic)
    if design.name == "full shuffles":
        share = design.shares["all"]
        sessions = round(share * design.sessions)
        drawn = rng.choice(len(lists), sessions, p=traffic / traffic.sum())
        some = RankedLists(lists.documents[drawn], lists.queries[drawn])
        shown = shuffle_lists(some, 1, rng)
        chances = clicks_on(shown)
        log = dr.ClickLog.from_clicks(
            shown, np.arange(len(shown)), rng.random(chances.shape) < chances
        )
        return log, 1_000 * share * float(before - chances.sum(axis=1).mean())
    shown, weights = variants(lists, traffic, design)
    log = dr.sample_log(data, shown, user, int(design.sessions), rng, weights=weights)
    after = float(np.average(clicks_on(shown).sum(axis=1), weights=weights))
    return log, 1_000 * float(before - after)


def main() -> int:
    """Print one line per setting and design."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seeds", type=int, default=20)
    arguments.add_argument("--first-seed", type=int, default=0)
    arguments.add_argument("--only", default="", help="a part of the names of settings")
    options = arguments.parse_args()
    failed = False
    print(
        f"{'setting':14} {'design':14} {'sessions':>16} {'planned':>7} {'widest':>13} "
        f"{'ratio':>5} {'of positions':>12} {'spread':>6} {'covered':>7} {'lost: at most':>13}"
        f" {'truly':>6}"
    )
    for setting in SETTINGS:
        if options.only not in setting.title:
            continue
        user, precision = dr.PositionBasedUser(eta=setting.eta), setting.precision
        found: dict[str, list[dict[str, Floats]]] = {}
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            data = dr.generate_splits("laptop", seed=seed).train
            lists = setting.lists(data, seed)
            traffic = setting.traffic(lists)
            rng = np.random.default_rng([seed, 0x_5A9])
            plain = dr.sample_log(data, lists, user, LOGGED, rng, weights=traffic)
            plan = dr.plan_swaps(plain, precision=precision)
            for design in plan.designs:
                log, lost = experiment(data, lists, traffic, user, design, rng)
                curve = estimate(log, design.method)
                assert curve.low is not None
                assert curve.high is not None
                truth = user.examination(curve.depth) / user.examination(1)
                run = {
                    "sessions": np.array(design.sessions),
                    "planned": np.log1p(design.reached[1:]),
                    "achieved": np.log(curve.high / curve.examination)[1:],
                    "error": np.log(curve.examination / truth)[1:],
                    "covered": ((curve.low <= truth) & (truth <= curve.high))[1:],
                    "lost": np.array([design.lost_per_thousand, lost]),
                }
                found.setdefault(design.name, []).append(run)
        for name, runs in found.items():
            every = {key: np.array([run[key] for run in runs]) for key in runs[0]}
            ratio = (every["achieved"] / every["planned"]).mean(axis=0)
            widest = np.expm1(every["achieved"].max(axis=1))
            error = every["planned"].mean(axis=0) / 1.96
            spread = np.sqrt(((every["error"] / error) ** 2).mean())
            bad = setting.rankings == 1 and bool((np.abs(ratio - 1) > ALLOWED).any())
            failed |= bad
            print(
                f"{setting.title:14} {name:14} {every['sessions'].mean():8,.0f} ± "
                f"{every['sessions'].std(ddof=1):<7,.0f}{precision:7.0%} {widest.mean():6.1%} ± "
                f"{widest.std(ddof=1):4.1%} {ratio.mean():5.2f}   {ratio.min():4.2f}–"
                f"{ratio.max():4.2f} {spread:6.2f} {every['covered'].mean():7.1%} "
                f"{every['lost'][:, 0].mean():13.2f} {every['lost'][:, 1].mean():6.2f}"
                f"{' !' if bad else ''}",
                flush=True,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
