"""How many sessions show a small difference by interleaving, and how often a wrong one is shown.

Run as `python -m benchmarks.interleaving` (a few minutes), or with `--part power`, `null` or
`looks`. Generated queries, users of the paper's simulation. Two rankers of which one is better by
0.01 nDCG@10: a Ranking SVM taught by a hundred queries, and a mixture of it with one taught by ten.

*power*: sessions in which a difference is found four times in five, at 5%, by a single test at the
end (from the exact mean and variance of a session's value) for team drafts, optimised interleaving
and an A/B test on clicks per session; how often it is found with so many, simulated, by that test
and by daily looks at a planned end; and the median of sessions after which the always-valid
interval, looked at a hundred times in so many, decides.

*null*: how often each test finds a difference where there is none, of 1,000 experiments of 14 days:

- *random*: users click by position alone, whatever is shown;
- *mirrored*: users prefer documents, and every query stands there twice, with the arms exchanged;
- *swapped*: the arms are exchanged in each of 200 queries or not, by chance. Other queries would
  prefer nobody, but these may: only tests over queries speak of others.

*looks*: the same for the number of looks, with usual intervals for comparison.

`--figure FILE` draws error and power against looks and sessions. Ends with 1 if a test is wrong in
more than 6% (and chance) where its assumption holds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.certainty import LEVEL, NORMAL_95
from dualrank.clicks import PositionBasedUser
from dualrank.data import Dataset, Scaler, top_lists
from dualrank.decisions import Interleaving, optimised, team_drafts
from dualrank.decisions.preference import Days, looks_by_day, sign_test, with_intervals
from dualrank.evaluation import Evaluator

DEPTH, DRAFTS, DAYS = 10, 16, 14
DIFFERENCE = 0.01
POWER = NORMAL_95 + 0.841621
"""Standard errors of a difference that is found four times in five."""
RANDOM_CLICK = 0.3
SESSIONS, QUERIES, PERMUTATION = "sign test, sessions", "sign test, queries", "permutation test"
ALWAYS, PLANNED, USUAL = "always valid, daily", "planned end, daily", "usual interval, daily"
BOTH = f"{ALWAYS}, over queries"
BOTH_PLANNED = f"{PLANNED}, over queries"
TESTS = (SESSIONS, QUERIES, PERMUTATION, ALWAYS, PLANNED, BOTH, BOTH_PLANNED, USUAL)
LOOKS = (1, 2, 5, 14, 50, 200)
MOST = 0.07
"""Six per cent, and as much as chance may add in a thousand experiments."""
DAILY = "planned end, daily"
LATER = "always valid decides after"

Floats = NDArray[np.float64]
Rankings = list[dict[str, list[str]]]


@dataclass(frozen=True, eq=False)
class Served:
    """For [query, list, position]: how likely a click is, and what it counts; [query, list]: how
    likely the list is."""

    clicks: Floats
    credit: Floats
    shares: Floats

    def moments(self) -> tuple[float, float]:
        """Mean and deviation of the value of a session, queries being equally frequent."""
        expected = (self.clicks * self.credit).sum(axis=2)
        noise = (self.credit**2 * self.clicks * (1 - self.clicks)).sum(axis=2)
        weights = self.shares / len(self.shares)
        mean = float((weights * expected).sum())
        return mean, float(np.sqrt((weights * (expected**2 + noise)).sum() - mean**2))

    def sample(self, sessions: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], Floats]:
        """Queries and values of sessions."""
        query = rng.integers(len(self.shares), size=sessions)
        drawn = (rng.random(sessions)[:, None] > np.cumsum(self.shares, axis=1)[query]).sum(axis=1)
        drawn = np.minimum(drawn, self.shares.shape[1] - 1)
        clicked = rng.random((sessions, self.clicks.shape[2])) < self.clicks[query, drawn]
        return query, (clicked * self.credit[query, drawn]).sum(axis=1)

    def exchanged(self, which: NDArray[np.bool_]) -> Served:
        """With the arms exchanged in these queries."""
        return replace(self, credit=np.where(which[:, None, None], -self.credit, self.credit))

    def mirrored(self) -> Served:
        """Every query twice, once with the arms exchanged."""
        return Served(
            np.concatenate([self.clicks, self.clicks]),
            np.concatenate([self.credit, -self.credit]),
            np.concatenate([self.shares, self.shares]),
        )

    def at_random(self) -> Served:
        """With users who click whatever is shown."""
        examined = PositionBasedUser().examination(self.clicks.shape[2])
        shown = self.clicks > 0
        return replace(self, clicks=np.where(shown, RANDOM_CLICK * examined, 0.0))


def two_rankers(seed: int) -> tuple[Dataset, Floats, Floats, float]:
    """Queries, the scores of two rankers, and by how much the first is better in nDCG@10."""
    splits = dr.generate_splits("tiny", seed=seed)
    scaler = Scaler.fit(splits.train.features)
    data, taught = (
        replace(part, features=scaler.transform(part.features))
        for part in (splits.train, splits.test)
    )
    rng = np.random.default_rng([seed, 0x_1E4F])
    good, poor = (
        dr.RankingSVM(C=10.0)
        .fit_grades(taught.take(np.sort(rng.choice(len(taught), count, replace=False))))
        .score(data.features)
        .astype(np.float64)
        for count in (100, 10)
    )
    good, poor = good / good.std(), poor / poor.std()
    evaluator = Evaluator(data, "ndcg@10")
    best = evaluator(good)["ndcg@10"]
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        behind = best - evaluator((1 - middle) * good + middle * poor)["ndcg@10"]
        low, high = (middle, high) if behind < DIFFERENCE else (low, middle)
    other = (1 - high) * good + high * poor
    return data, good, other, float(best - evaluator(other)["ndcg@10"])


def served(data: Dataset, lists: Sequence[Sequence[Interleaving]]) -> Served:
    """The lists of every query in front of the paper's users; names are rows of the data."""
    user = PositionBasedUser()
    relevance = user.perceived_relevance(data.require_grades(), data.max_grade)
    examined = user.examination(DEPTH)
    most = max(len(each) for each in lists)
    clicks, credit = np.zeros((2, len(lists), most, DEPTH))
    shares = np.zeros((len(lists), most))
    for q, drawn in enumerate(lists):
        for n, each in enumerate(drawn):
            rows = np.array(each.documents, dtype=int)
            clicks[q, n, : len(rows)] = examined[: len(rows)] * relevance[rows]
            signs = [{"A": 1.0, "B": -1.0}.get(arm or "", 0.0) for arm in each.arms]
            credit[q, n, : len(rows)] = np.array(signs) * each.credits
            shares[q, n] = each.probability
    return Served(clicks, credit, shares)


def ways(seed: int) -> tuple[dict[str, Served], float]:
    """Both kinds of interleaving, the A/B test, and the true difference of the rankers."""
    data, good, other, difference = two_rankers(seed)
    tops = [top_lists(data, scores, DEPTH).documents for scores in (good, other)]
    rng = np.random.default_rng([seed, 0x_D4AF])
    drafts, best, alone = [], [], []
    for one, two in zip(*tops, strict=True):
        rankings = {"A": [str(d) for d in one if d >= 0], "B": [str(d) for d in two if d >= 0]}
        drafts.append(team_drafts(rankings, rng, DEPTH, DRAFTS))
        best.append(optimised(rankings, DEPTH))
        alone.append(
            [
                Interleaving(tuple(ranking), (arm,) * len(ranking), (1.0,) * len(ranking), 0.5)
                for arm, ranking in rankings.items()
            ]
        )
    return {
        "team-draft": served(data, drafts),
        "optimised": served(data, best),
        "A/B": served(data, alone),
    }, difference


def sessions_needed(way: str, each: Served) -> float:
    """For a difference found four times in five; an A/B test has half of the sessions in a group.

    The A/B test compares mean clicks per session, whose variance is within and between queries.
    """
    if way != "A/B":
        mean, deviation = each.moments()
        return (POWER * deviation / mean) ** 2
    expected = each.clicks.sum(axis=2)
    noise = (each.clicks * (1 - each.clicks)).sum(axis=2)
    means = expected.mean(axis=0)
    variances = (expected**2 + noise).mean(axis=0) - means**2
    return float(POWER**2 * 2 * variances.sum() / (means[0] - means[1]) ** 2)


def days_of(values: Floats, days: int, query: NDArray[np.int64] | None = None) -> Days:
    """What the end of each of so many days knows; all are of one query where that is no matter."""
    count = len(values)
    own = np.zeros(count, np.int64) if query is None else query
    return looks_by_day(values, np.ones(count, np.int64), np.arange(count) * days // count, own)


def decided(days: Days, until: int | None) -> int:
    """After how many sessions a look at the end of a day decides; 0 if none does."""
    looks = with_intervals(days, LEVEL, until)
    return next((look.sessions for look in looks if look.ahead), 0)


def permutation(values: Floats, query: NDArray[np.int64], rng: np.random.Generator) -> float:
    """The p-value of the test over queries."""
    sums = np.bincount(query, values)[np.unique(query)]
    return dr.fisher_test(sums, np.zeros(len(sums)), permutations=1_000, seed=rng).p_value


def usual(values: Floats, days: int) -> bool:
    """Whether a usual 95% interval excludes zero on any day."""
    n = len(values) * np.arange(1, days + 1) // days
    total, squares = np.cumsum(values)[n - 1], np.cumsum(values**2)[n - 1]
    reach = NORMAL_95 * np.sqrt(np.maximum(squares - total**2 / n, 0))
    return bool((np.abs(total) > reach).any())


def power(seeds: Sequence[int], experiments: int) -> dict[str, list[float]]:
    """Print how many sessions are needed; return the share found at each part of that number."""
    curves: dict[str, list[float]] = {}
    print(
        "\n| seed | nDCG@10 | "
        + " | ".join(
            f"{way}: sessions | found | {DAILY} | {LATER}" for way in ("team-draft", "optimised")
        )
        + " | A/B: sessions |"
    )
    print("|---" * 11 + "|")
    rows = []
    for seed in seeds:
        found, difference = ways(seed)
        rng = np.random.default_rng([seed, 0x_90E4])
        row = [difference]
        for way in ("team-draft", "optimised"):
            each = found[way]
            needed = round(sessions_needed(way, each))
            ends, looked, stops = [], [], []
            for _ in range(experiments):
                values = each.sample(needed, rng)[1]
                z = values.mean() / values.std() * np.sqrt(needed)
                ends.append(z > NORMAL_95)
                looked.append(decided(days_of(values, DAYS), needed) > 0)
                stops.append(_stop(each, needed, rng))
            row += [needed, float(np.mean(ends)), float(np.mean(looked)), float(np.median(stops))]
            curves.setdefault(way, []).append(needed)
        row.append(sessions_needed("A/B", found["A/B"]))
        curves.setdefault("A/B", []).append(row[-1])
        rows.append(row)
        print(f"| {seed} | {_row(row)} |", flush=True)
    print(f"| median | {_row(np.median(rows, axis=0).tolist())} |")
    ratios = np.array(rows)[:, [1, 5]] / np.array(rows)[:, [9]]
    print(
        "An A/B test needs so many times the sessions: "
        + ", ".join(
            f"{way} {1 / np.median(r):.1f} ({1 / r.max():.1f}–{1 / r.min():.1f})"
            for way, r in zip(("team-draft", "optimised"), ratios.T, strict=True)
        )
    )
    return curves


def _stop(each: Served, needed: int, rng: np.random.Generator) -> int:
    """Sessions until the always-valid interval decides, looking a hundred times in `needed`."""
    values = each.sample(3 * needed, rng)[1]
    return decided(days_of(values, 300), None) or len(values) + 1


def _row(row: Sequence[float]) -> str:
    shown = [f"{row[0]:.4f}"]
    for sessions, found, looked, later in (row[1:5], row[5:9]):
        shown += [f"{sessions:,.0f}", f"{found:.0%}", f"{looked:.0%}", f"{later:,.0f}"]
    return " | ".join([*shown, f"{row[9]:,.0f}"])


def null(experiments: int, sizes: Sequence[int], seed: int) -> bool:
    """Print how often each test finds what is not there; whether one does so too often."""
    found, _ = ways(seed)
    failed = False
    print("\n| way | users | sessions | " + " | ".join(TESTS) + " |")
    print("|---" * (3 + len(TESTS)) + "|")
    for way in ("team-draft", "optimised"):
        for users in ("random", "mirrored", "swapped"):
            for sessions in sizes:
                rng = np.random.default_rng([seed, sessions, len(users)])
                rates = np.mean(
                    [wrong(found[way], users, sessions, rng) for _ in range(experiments)], axis=0
                )
                print(f"| {way} | {users} | {sessions:,} | {_rates(rates)} |", flush=True)
                held = _assumed(way, users)
                failed |= any(
                    rate > MOST for rate, test in zip(rates, TESTS, strict=True) if test in held
                )
    return failed


def wrong(each: Served, users: str, sessions: int, rng: np.random.Generator) -> list[bool]:
    """Which tests find a difference in one experiment without any."""
    if users == "random":
        each = each.at_random()
    elif users == "mirrored":
        each = each.mirrored()
    else:
        chosen = rng.choice(len(each.shares), 200, replace=False)
        each = Served(each.clicks[chosen], each.credit[chosen], each.shares[chosen])
        each = each.exchanged(rng.random(len(chosen)) < 0.5)
    query, values = each.sample(sessions, rng)
    sums = np.bincount(query, values)[np.unique(query)]
    days = days_of(values, DAYS, query)
    return [
        (sign_test(values).p_value or 0) <= LEVEL,
        (sign_test(sums.astype(np.float64)).p_value or 0) <= LEVEL,
        permutation(values, query, rng) <= LEVEL,
        decided(days, None) > 0,
        decided(days, sessions) > 0,
        decided(days.over_queries(), None) > 0,
        decided(days.over_queries(), sessions) > 0,
        usual(values, DAYS),
    ]


def _assumed(way: str, users: str) -> set[str]:
    """The tests whose assumption holds: of sessions where these queries prefer nobody, of queries
    where others do not; that of signs where all credits are one."""
    of_sessions = {ALWAYS, PLANNED} if users != "swapped" else set()
    signs = {SESSIONS} if users != "swapped" and way == "team-draft" else set()
    everywhere = {PERMUTATION, BOTH, BOTH_PLANNED}
    return of_sessions | signs | everywhere | ({QUERIES} if way == "team-draft" else set())


def _rates(rates: Sequence[float]) -> str:
    return " | ".join(f"{rate:.1%}" for rate in rates)


def looks(experiments: int, seed: int) -> dict[str, list[float]]:
    """Print how often a decision is wrong, by how often one looks."""
    each = ways(seed)[0]["team-draft"].at_random()
    found: dict[str, list[float]] = {ALWAYS: [], PLANNED: [], USUAL: []}
    sessions = 10_000
    print(f"\n| looks | {' | '.join(found)} |\n|---|---|---|---|")
    for count in LOOKS:
        rng = np.random.default_rng([seed, count])
        rows = []
        for _ in range(experiments):
            values = each.sample(sessions, rng)[1]
            days = days_of(values, count)
            rows.append(
                [decided(days, None) > 0, decided(days, sessions) > 0, usual(values, count)]
            )
        rates = np.mean(rows, axis=0)
        for name, rate in zip(found, rates, strict=True):
            found[name].append(float(rate))
        print(f"| {count} | {_rates(rates)} |", flush=True)
    return found


def figure(errors: dict[str, list[float]], needed: dict[str, list[float]], path: Path) -> None:
    """Error by number of looks, and power by sessions."""
    from dualrank.report import LEGEND, LIGHT, few_ticks, new_figure, title, write_figure

    drawn, (left, right) = new_figure(2)
    for (name, rates), color in zip(errors.items(), ("blue", "green", "vermilion"), strict=True):
        left.plot(LOOKS, rates, color=LIGHT[color], marker="o", ms=3, label=name)
    left.axhline(LEVEL, color=LIGHT["ink"], lw=0.8)
    left.set_xscale("log")
    left.set_xlabel("looks")
    left.legend(**LEGEND)
    title(left, "wrong decisions without a difference")
    sessions = np.geomspace(1e3, 3e6, 200)
    for (way, counts), color in zip(needed.items(), ("blue", "green", "vermilion"), strict=True):
        chances = [
            NormalDist().cdf(POWER * np.sqrt(n / np.median(counts)) - NORMAL_95) for n in sessions
        ]
        right.plot(sessions, chances, color=LIGHT[color], label=way)
    right.set_xscale("log")
    right.set_xlabel("sessions")
    right.legend(**LEGEND)
    few_ticks(left, "y")
    title(right, f"chance to find {DIFFERENCE:g} nDCG@10")
    write_figure(drawn, path)


def main() -> int:
    """Print the tables that are asked for."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--part", choices=("power", "null", "looks"), default=None)
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--first-seed", type=int, default=0)
    arguments.add_argument("--experiments", type=int, default=1_000)
    arguments.add_argument("--figure", type=Path, default=None)
    options = arguments.parse_args()
    first, part = options.first_seed, options.part
    failed, needed, errors = False, None, None
    if part in (None, "power"):
        seeds = range(first, first + options.seeds)
        needed = power(seeds, max(options.experiments // 40, 1))
    if part in (None, "null"):
        failed = null(options.experiments, (300, 3_000, 10_000), first)
    if part in (None, "looks"):
        errors = looks(options.experiments, first)
    if options.figure is not None and needed is not None and errors is not None:
        figure(errors, needed, options.figure)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
