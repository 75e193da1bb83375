"""A model that is updated day by day, against one that is trained on all days every day.

    python -m benchmarks.days --every 7 --world 1 --first-seed 10 [--method dla]
    python -m benchmarks.days --changed --world 1 --first-seed 10

Thirty days of searches in a generated world, by the paper's user. The engine's scores vary from day
to day, so that hardly any list is displayed twice. A third of the queries are asked every day, the
others in one of three seasons of ten days each. The first day is trained on; every further day is
learned by `Model.update`, and beside it a model is trained anew on all days so far (with `--every`
on some of them; it would have cost as much on the others). Printed are
nDCG@10 on queries that nobody saw, and on those of the first season, how far the worst weight is
off, processor seconds, and how many lists were scored.

Settings of updates were chosen in world 100, on seed 100.

With `--changed` users step from η = 0.5 to 1.5 after half of the days, and updates are compared
that are told so (`changed`), that are not, that let older sessions fade, and that remember nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import dualrank as dr
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_sessions
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.generator import World
from dualrank.data.lists import RankedLists, top_lists
from dualrank.evaluation.evaluator import Evaluator
from dualrank.rankers import DNN

DAYS, SESSIONS, QUERIES, FEATURES, DEPTH = 30, 20_000, 3_000, 32, 10
SEASONS = 3
JUDGED = 30
"""Queries whose grades the engine was made of."""
VARIES = 0.3
RANKER = DNN((64, 32))
WITHIN, SHARE = 0.002, 0.1


@dataclass(frozen=True, eq=False)
class Engine:
    """A world with a search engine in it."""

    data: Dataset
    test: Dataset
    season: np.ndarray
    scores: np.ndarray
    seed: int

    @classmethod
    def of(cls, world: int, seed: int) -> Engine:
        """An engine made of the grades of a few queries."""
        source = World(FEATURES, world)
        data, test = source.generate(QUERIES, 2 * seed), source.generate(1_000, 2 * seed + 1)
        few = data.take(np.arange(JUDGED))
        inputs = np.column_stack([few.features, np.ones(few.document_count)])
        ridge = 10.0 * np.eye(inputs.shape[1])
        known = np.linalg.solve(inputs.T @ inputs + ridge, inputs.T @ few.require_grades())
        rng = np.random.default_rng([seed, 0x_DA1])
        season = rng.integers(-1, SEASONS, len(data))
        season[rng.random(len(data)) < 1 / 3] = -1
        scores = data.features @ known[:-1]
        return cls(data, test, season, scores / scores.std(), seed)

    def day(self, number: int, eta: float, sessions: int) -> ClickLog:
        """The clicks of one day."""
        rng = np.random.default_rng([self.seed, number, 0x_DA2])
        noise = rng.normal(0, VARIES, len(self.scores))
        lists = top_lists(self.data, self.scores + noise, DEPTH)
        user = PositionBasedUser(eta=eta)
        grades = lists.gather(self.data.require_grades())
        pages = user.browse(grades, lists.mask, self.data.max_grade)
        asked = (self.season == -1) | (self.season == SEASONS * number // DAYS)
        log = sample_sessions(
            pages, lists, sessions, rng, self.data.catalogue, asked.astype(np.float64)
        )
        return log.take_lists(np.unique(log.list_of))

    def quality(self, model: dr.Model) -> tuple[float, float]:
        """nDCG@10 of unseen queries, and of those of the first season."""
        first = self.data.take(np.flatnonzero(self.season == 0))
        unseen, gone = (
            Evaluator(each, ["ndcg@10"])(model.predict(each))["ndcg@10"]
            for each in (self.test, first)
        )
        return unseen, gone


def off_by(model: dr.Model, eta: float) -> float:
    """The largest relative error of a weight."""
    if model.propensity is None:
        return float("nan")
    truth = PositionBasedUser(eta=eta).examination(DEPTH)
    wrong = model.propensity.weights[:DEPTH] * truth / truth[0] - 1
    return float(np.abs(wrong).max())


def together(logs: list[ClickLog]) -> ClickLog:
    """All days as one log."""
    before = np.cumsum([0, *(len(log.lists) for log in logs)])
    lists = RankedLists(
        np.concatenate([log.lists.documents for log in logs]),
        np.concatenate([log.lists.queries for log in logs]),
    )
    rows = [log.list_of + start for log, start in zip(logs, before[:-1], strict=True)]
    return ClickLog(
        lists,
        np.concatenate(rows).astype(np.int32),
        np.concatenate([log.clicks for log in logs]),
        np.concatenate([log.counts for log in logs]),
        catalogue=logs[0].catalogue,
    )


def seconds_of(work: Any) -> tuple[dr.Model, float]:
    """What some work gives, and its processor time."""
    start = time.process_time()
    return work(), time.process_time() - start


def against_retraining(args: argparse.Namespace) -> bool:
    """The table of the first form; true where both limits hold."""
    rows, shares, scored = [], [], []
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        engine = Engine.of(args.world, seed)
        days = [engine.day(number, 1.0, args.sessions) for number in range(args.days)]
        how = {"method": args.method, "ranker": RANKER, "seed": seed}
        model = dr.fit(days[0], engine.data, **how).remember(days[0], engine.data)
        every: list[tuple[float, ...]] = []
        cost, lists = np.zeros(2), np.zeros(2)
        for number in range(1, args.days):
            log, options = days[number], options_of(args)
            go_on = model.update
            model, spent = seconds_of(lambda: go_on(log, engine.data, seed=seed, **options))  # noqa: B023
            cost[0] += spent
            lists[0] += model.training["update"]["history"]["clicked"]
            if (args.days - 1 - number) % args.every:
                continue
            all_days = together(days[: number + 1])
            anew, spent = seconds_of(lambda: dr.fit(all_days, engine.data, **how))  # noqa: B023
            cost[1] += spent
            lists[1] += anew.training["history"]["clicked"]
            every.append(
                tuple(v for each in (model, anew) for v in (*engine.quality(each), off_by(each, 1)))
            )
        found = np.array(every)
        # What was trained anew on some days would have cost as much on the others.
        cost[1], lists[1] = ((args.days - 1) / len(every) * each for each in (cost[1], lists[1]))
        rows.append(np.concatenate([found.mean(axis=0), found[-1]]))
        shares.append(cost[0] / cost[1])
        scored.append(lists[0] / lists[1])
        gap = found[:, 0] - found[:, 3]
        print(
            f"seed {seed}: nDCG@10 {found[:, 0].mean():.4f} updated, {found[:, 3].mean():.4f} anew "
            f"({gap.mean():+.4f}; worst day {gap.min():+.4f}); first season at the end "
            f"{found[-1, 1]:.4f} and {found[-1, 4]:.4f}; worst weight off by "
            f"{found[:, 2].mean():.1%} and {found[:, 5].mean():.1%}; processor "
            f"{shares[-1]:.3f}, lists {scored[-1]:.3f} ({cost[0]:.0f} s and {cost[1]:.0f} s)",
            flush=True,
        )
    table = np.array(rows)
    gaps = table[:, 0] - table[:, 3]
    share, most = float(np.mean(shares)), float(np.mean(scored))
    spread = gaps.std(ddof=1) if len(gaps) > 1 else 0.0
    print(
        f"{args.method}, {args.seeds} seeds: {gaps.mean():+.4f} ± {spread:.4f} nDCG@10 on average "
        f"over days (limit −{WITHIN}); {share:.3f} of the processor time, {most:.3f} of the lists "
        f"scored (limit {SHARE})"
    )
    return bool(gaps.mean() >= -WITHIN and share <= SHARE and most <= SHARE)


WAYS: dict[str, dict[str, Any]] = {
    "told (changed)": {},
    "not told": {},
    "half-life of two days": {"half_life": 2.0 * SESSIONS},
    "no memory": {"memory": 0},
}
"""What updates are told, or remember."""


def changing_users(args: argparse.Namespace) -> bool:
    """The table of the second form: who follows, and who forgets."""
    step = args.days // 2
    after = (step, step + 1, step + 3, args.days - 1)
    found: dict[str, list[list[float]]] = {name: [] for name in WAYS}
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        engine = Engine.of(args.world, seed)
        etas = [0.5 if number < step else 1.5 for number in range(args.days)]
        days = [engine.day(n, eta, args.sessions) for n, eta in enumerate(etas)]
        first = dr.fit(days[0], engine.data, method=args.method, ranker=RANKER, seed=seed)
        for name, options in WAYS.items():
            model = first.remember(days[0], engine.data, memory=options.get("memory", 20_000))
            values: list[float] = []
            for number in range(1, args.days):
                told = {"changed": True} if name.startswith("told") and number == step else {}
                model = model.update(
                    days[number], engine.data, seed=seed, **options_of(args), **options, **told
                )
                if number in (step - 1, *after):
                    values += [*engine.quality(model), off_by(model, etas[number])]
            found[name].append(values)
        print(f"seed {seed} done", file=sys.stderr, flush=True)
    columns = ["before", *(f"day {n - step + 1} after" for n in after)]
    print(f"{args.method}, η from 0.5 to 1.5 before day {step + 1}; {args.seeds} seeds, mean ± sd")
    for what, place in (("nDCG@10, unseen", 0), ("nDCG@10, first season", 1), ("worst weight", 2)):
        print(f"{what:<24}" + "".join(f"{column:>18}" for column in columns))
        for name, every in found.items():
            chosen = np.array(every)[:, place::3]
            spread = chosen.std(axis=0, ddof=1) if len(chosen) > 1 else 0 * chosen[0]
            cells = zip(chosen.mean(axis=0), spread, strict=True)
            print(f"{name:<24}" + "".join(f"{mean:>10.4f} ± {sd:.4f}" for mean, sd in cells))
    return True


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """Options of an update that were given."""
    names = ("steps", "learning_rate", "propensity_rate", "half_life", "schedule", "memory")
    found = {name: getattr(args, name) for name in names}
    return {"validation": 0.0, **{k: v for k, v in found.items() if v is not None}}


def main() -> int:
    """Print what was asked for; 1 if a limit fails."""
    parser = argparse.ArgumentParser(prog="benchmarks.days")
    parser.add_argument("--changed", action="store_true")
    for name, kind, usual in (
        ("seeds", int, 5), ("first-seed", int, 0), ("world", int, 0), ("days", int, DAYS),
        ("sessions", int, SESSIONS), ("every", int, 1), ("method", str, "likelihood"),
        ("steps", int, None), ("learning-rate", float, None), ("propensity-rate", float, None),
        ("half-life", float, None), ("schedule", str, None), ("memory", int, None),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=kind, default=usual)
    args = parser.parse_args()
    work = changing_users if args.changed else against_retraining
    return int(not work(args))


if __name__ == "__main__":
    sys.exit(main())
