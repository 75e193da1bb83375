"""Whether swaps that were planned on a plain log give the precision that the plan promised.

    python -m benchmarks.swap_plans [--seeds 20] [--first-seed 0]

On generated data (8,000 queries, ten results, an initial ranker that was trained on 1% of them) the
paper's users click 300,000 times through lists that never change: all that a plan is made from. For
each design the planned sessions are then simulated, the curve is estimated as the plan says, and

- *achieved* is how far the widest of its 95% intervals reaches, to be compared with *planned*;
- *ratio* is the half width achieved over the one planned, on the logarithmic scale: its mean over
  positions and seeds, and the least and the largest of any position, each a mean over seeds;
- *spread* is the same ratio for the errors themselves: the standard deviation over seeds of
  log ê_k − log e_k, over the standard error planned, as the root of the mean square over positions;
- *covered* is the share of intervals that hold the truth;
- *lost* are the clicks that the plan says are lost at most, and those that users as they are lose
  in expectation, per 1,000 sessions.

Exits with 1 where a mean ratio, or that of the widest interval, is off by more than 15%.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.data.interventions import shuffle_lists
from dualrank.data.lists import RankedLists
from dualrank.propensity import estimate
from dualrank.propensity.swap_plan import PlannedDesign
from dualrank.reproduce.simulation import rank_initially

LOGGED = 300_000
SETTINGS = ((1.0, 0.10), (1.0, 0.20), (0.5, 0.10), (1.5, 0.20))
ALLOWED = 0.15

Floats = NDArray[np.float64]


def variants(lists: RankedLists, design: PlannedDesign) -> tuple[RankedLists, Floats]:
    """Every list as it is and with every exchange, and how often each is shown."""
    documents, queries, weights = [lists.documents], [lists.queries], [np.ones(len(lists))]
    for name, share in design.shares.items():
        i, j = (int(position) - 1 for position in name.split("-"))
        long = np.flatnonzero(lists.mask[:, j])
        swapped = lists.documents[long]
        swapped[:, [i, j]] = swapped[:, [j, i]]
        documents.append(swapped)
        queries.append(lists.queries[long])
        weights.append(np.full(len(long), share))
        weights[0][long] -= share
    shown = RankedLists(np.concatenate(documents), np.concatenate(queries))
    return shown, np.concatenate(weights)


def experiment(
    data: dr.Dataset,
    lists: RankedLists,
    user: dr.PositionBasedUser,
    design: PlannedDesign,
    rng: np.random.Generator,
) -> tuple[dr.ClickLog, float]:
    """The log of a planned design, and the clicks that 1,000 sessions lose in expectation."""

    def clicks_on(shown: RankedLists) -> Floats:
        grades = shown.gather(data.require_grades())
        return user.click_probabilities(grades, shown.mask, data.max_grade)

    before = clicks_on(lists).sum(axis=1).mean()
    if design.name == "full shuffles":
        share = design.shares["all"]
        drawn = rng.integers(len(lists), size=round(share * design.sessions))
        some = RankedLists(lists.documents[drawn], lists.queries[drawn])
        shown = shuffle_lists(some, 1, rng)
        chances = clicks_on(shown)
        log = dr.ClickLog.from_clicks(
            shown, np.arange(len(shown)), rng.random(chances.shape) < chances
        )
        return log, 1_000 * share * float(before - chances.sum(axis=1).mean())
    shown, weights = variants(lists, design)
    log = dr.sample_log(data, shown, user, int(design.sessions), rng, weights=weights)
    after = float(np.average(clicks_on(shown).sum(axis=1), weights=weights))
    return log, 1_000 * float(before - after)


def main() -> int:
    """Print one line per setting and design."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seeds", type=int, default=20)
    arguments.add_argument("--first-seed", type=int, default=0)
    options = arguments.parse_args()
    failed = False
    print(
        f"{'eta':>4} {'design':14} {'sessions':>16} {'planned':>7} {'achieved':>13} "
        f"{'ratio':>5} {'of positions':>12} {'spread':>6} {'covered':>7} {'lost: at most':>13}"
        f" {'truly':>6}"
    )
    for eta, precision in SETTINGS:
        user = dr.PositionBasedUser(eta=eta)
        found: dict[str, list[dict[str, Floats]]] = {}
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            data = dr.generate_splits("laptop", seed=seed).train
            lists = rank_initially(data, seed)
            rng = np.random.default_rng([seed, 0x_5A9])
            plan = dr.plan_swaps(dr.sample_log(data, lists, user, LOGGED, rng), precision=precision)
            for design in plan.designs:
                log, lost = experiment(data, lists, user, design, rng)
                curve = estimate(log, design.method)
                assert curve.low is not None
                assert curve.high is not None
                truth = user.examination(curve.depth) / user.examination(1)
                run = {
                    "sessions": design.sessions,
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
            bad = abs(ratio.mean() - 1) > ALLOWED or abs(widest.mean() / precision - 1) > ALLOWED
            failed |= bad
            print(
                f"{eta:4.1f} {name:14} {every['sessions'].mean():8,.0f} ± "
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
