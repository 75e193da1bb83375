"""How good estimates of a new ranker are, where the truth is known: python -m benchmarks.estimates.

Rankers (naive, dual learning, likelihood, linear, trees, an SVM, luck, two loggers) are trained
once on a log of generated data, and judged on logs of other queries of the same world that the
paper's user clicked: the difference of every pair of them in expected clicks per session against
the true one, which is that over many more queries. Each query was displayed in three orders of the
same ten documents, and rankers order those ten.

`--curve` says what the estimates are told of examination: the truth, what the log shows
(harvested), what dual learning finds (learned), or a curve whose η is off by 0.5 (wrong).
`--user` lets others than the paper's user click. `--figure` draws error against sessions, of the
pairs that all numbers of sessions have: `--seeds` and `--pairs` may be lists, one for each of them.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import dualrank as dr
from dualrank.clicks import make_user
from dualrank.data import Dataset, RankedLists, join_lists
from dualrank.data.generator import World
from dualrank.decisions import estimate, verdict_of
from dualrank.learning import estimate_by_dual_learning
from dualrank.reproduce.simulation import train_initial_ranker
from dualrank.settings import TrainingSettings

FEATURES, POPULATION, TRAINING = 32, 40_000, 4_000
QUERIES = 8_000
WORLD = 0
ESTIMATORS = ("direct", "ips", "self-normalised", "clipped", "doubly-robust", "affine")
CURVES = ("true", "harvested", "learned", "wrong")
LOGGED = "logged"
LOOKS = {
    "direct": ("orange", "-", "s"),
    "ips": ("sky", "-", "o"),
    "self-normalised": ("blue", "--", "x"),
    "clipped": ("gray", ":", "v"),
    "doubly-robust": ("vermilion", "-", "D"),
    "affine": ("purple", "-", "^"),
}
"""Colour, line and mark: three that often lie on one another are seen through each other."""


@dataclass(frozen=True)
class Scene:
    """Queries, each with the ten documents that were displayed, how rankers order those, and the
    orders in which they were displayed."""

    data: Dataset
    scores: dict[str, np.ndarray]
    orders: list[np.ndarray]

    @property
    def lists(self) -> RankedLists:
        """What was displayed, each different list once."""
        return join_lists([dr.top_lists(self.data, each) for each in self.orders])

    def take(self, queries: np.ndarray) -> Scene:
        """Some of the queries only."""
        rows = queries[self.data.query_of_document]
        return Scene(
            self.data.keep(rows),
            {name: each[rows] for name, each in self.scores.items()},
            [each[rows] for each in self.orders],
        )


@lru_cache(maxsize=1)
def scene(world: int) -> Scene:
    """The population, with every ranker trained on other queries of the same world."""
    made = World(FEATURES, world)
    train = made.generate(TRAINING, seed=1)
    initial = train_initial_ranker(train, 0)
    log = dr.sample_log(
        train,
        dr.top_lists(train, initial.score(train.features)),
        dr.PositionBasedUser(),
        100_000,
        seed=1,
    )
    whole = made.generate(POPULATION, seed=2)
    shown = dr.top_lists(whole, initial.score(whole.features))
    kept = np.zeros(whole.document_count, dtype=bool)
    kept[shown.documents[shown.mask]] = True
    data = whole.keep(kept)
    models = {
        "naive": dr.fit(log, train, method="naive", ranker=dr.DNN((32, 16)), steps=1_500),
        "dla": dr.fit(log, train, method="dla", ranker=dr.DNN((32, 16)), steps=1_500),
        "likelihood": dr.fit(log, train, method="likelihood", ranker=dr.DNN((32, 16)), steps=1_500),
        "linear": dr.fit(log, train, method="dla", ranker=dr.Linear(), steps=1_500),
        "trees": dr.fit(log, train, method="likelihood", ranker=dr.Trees(), steps=60),
    }
    scores = {name: model.predict(data).astype(np.float64) for name, model in models.items()}
    scores["logger"] = initial.score(data.features).astype(np.float64)
    other = train_initial_ranker(train, 1_000)
    scores["other logger"] = other.score(data.features).astype(np.float64)
    scores["random"] = np.random.default_rng(7).random(data.document_count)
    noise = np.random.default_rng(8).normal(0, scores["logger"].std() / 2, (2, data.document_count))
    return Scene(data, scores, [scores["logger"] + each for each in (0.0, *noise)])


@lru_cache(maxsize=8)
def truth_of(world: int, user: str) -> dict[str, float]:
    """What every ranking of a world earns of a user."""
    return earned(scene(world), make_user(user))


def earned(scene: Scene, user: Any) -> dict[str, float]:
    """What every ranking earns per session of this user, over the whole population."""
    grades = scene.data.require_grades()

    def clicks(lists: RankedLists) -> np.ndarray:
        pages = user.browse(lists.gather(grades), lists.mask, scene.data.max_grade)
        return pages.marginal().sum(axis=1)

    found = {
        name: float(clicks(dr.top_lists(scene.data, scores)).mean())
        for name, scores in scene.scores.items()
    }
    # Every order of a query is as likely as the others, however many there are.
    shown = scene.lists
    times = np.bincount(shown.queries, minlength=len(scene.data))
    found[LOGGED] = float((clicks(shown) / times[shown.queries]).sum() / len(scene.data))
    return found


def drawn_log(scene: Scene, user: Any, sessions: int, seed: int) -> dr.ClickLog:
    """A log in which each order of a query is as likely as its others."""
    lists = scene.lists
    times = np.bincount(lists.queries, minlength=len(scene.data))
    weights = 1 / times[lists.queries]
    return dr.sample_log(scene.data, lists, user, sessions, seed=seed, weights=weights)


def one_seed(
    seed: int, *, world: int, sessions: int, queries: int, curve: str, user: str, pairs: int
) -> list[dict[str, Any]]:
    """Every pair of rankers on the log of one seed."""
    truth, who = truth_of(world, user), make_user(user)
    rng = np.random.default_rng([seed, 0x_E57])
    chosen = rng.permutation(len(scene(world).data)) < queries
    stage = scene(world).take(chosen)
    log = drawn_log(stage, who, sessions, seed)
    given: Any = curve
    paper = dr.PositionBasedUser()
    if curve == "true":
        given = dr.Propensity.of(paper.examination(10))
    elif curve == "wrong":
        given = dr.Propensity.of(dr.PositionBasedUser(eta=0.5 if seed % 2 else 1.5).examination(10))
    elif curve == "learned":
        settings = TrainingSettings(steps=1_500, seed=seed)
        given = estimate_by_dual_learning(
            log, stage.data, ranker=dr.DNN((32, 16)), settings=settings
        )
    names = [*stage.scores, LOGGED]
    every = list(combinations(names, 2))
    rng = np.random.default_rng([world, 0x_9A1])
    every = [every[i] for i in np.sort(rng.permutation(len(every))[:pairs])]
    found = []
    for new, old in every:
        against = LOGGED if old == LOGGED else stage.scores[old]
        told = estimate(
            log,
            stage.scores[new],
            stage.data,
            against=against,
            propensity=given,
            only_displayed=True,
            resamples=400,
            seed=seed,
        )
        row: dict[str, Any] = {"new": new, "old": old, "seed": seed}
        row["truth"] = truth[new] - truth[old]
        row |= {"verdict": verdict_of(told).decision, "contradicted": bool(told.contradicted)}
        row["estimates"] = {
            each.estimator: [each.difference, each.low, each.high]
            for each in told.estimates
            if each.metric == "clicks" and not each.part
        }
        found.append(row)
    return found


def table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Of every estimator: error, coverage, and how often a clear sign is right."""
    lines = list[tuple[str, ...]]()
    truths = np.array([row["truth"] for row in rows])
    plain = _mse(rows, "ips")
    for name in ESTIMATORS:
        some = [row for row in rows if name in row["estimates"]]
        if not some:
            continue
        truth = np.array([row["truth"] for row in some])
        gap, low, high = np.array([row["estimates"][name] for row in some]).T
        clear = (low > 0) | (high < 0)
        beyond = np.abs(truth) > (high - low) / 2
        inside = (low <= truth) & (truth <= high)
        lines.append(
            (
                name,
                f"{np.sqrt(np.mean((gap - truth) ** 2)):.4f}",
                f"{np.mean(gap - truth):+.4f}",
                f"{_mse(some, name) / plain:.2f}",
                _share(some, inside),
                f"{np.mean(high - low) / 2:.4f}",
                f"{np.sum(np.sign(gap[beyond]) == np.sign(truth[beyond]))} of {beyond.sum()}",
                f"{np.sum(clear & (np.sign(gap) != np.sign(truth)))} of {clear.sum()}",
            )
        )
    decided = [row for row in rows if row["verdict"] != "cannot tell"]
    wrong = sum((row["verdict"] == "better") != (row["truth"] > 0) for row in decided)
    told = np.mean([row["contradicted"] for row in rows])
    lines.append(
        (
            f"verdicts: {len(decided)} of {len(rows)} decide, {wrong} wrongly; the log contradicts "
            f"the curve in {told:.0%}; true differences {np.abs(truths).min():.4f} to "
            f"{np.abs(truths).max():.4f}",
        )
    )
    return lines


def _share(rows: list[dict[str, Any]], inside: np.ndarray) -> str:
    """How many are, with the standard error: pairs of a seed share a log, and are one try."""
    seeds, of_row = np.unique([row["seed"] for row in rows], return_inverse=True)
    by_seed = np.bincount(of_row, inside) / np.bincount(of_row)
    if len(seeds) == 1:
        return f"{inside.mean():.1%}"
    return f"{inside.mean():.1%} ± {by_seed.std(ddof=1) / np.sqrt(len(seeds)):.1%}"


def _mse(rows: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([(r["estimates"][name][0] - r["truth"]) ** 2 for r in rows]))


HEADER = (
    "estimator",
    "error",
    "bias",
    "MSE/ips",
    "covered",
    "half width",
    "sign beyond it",
    "wrong clear signs",
)


def numbers(text: str) -> list[int]:
    """Whole numbers with commas between them: "1e4,100000"."""
    return [int(float(each)) for each in text.split(",")]


def for_each(text: str, count: int) -> list[int]:
    """One number for each of so many, or the same for all."""
    found = numbers(text)
    if len(found) not in (1, count):
        raise ValueError(f"{text}: expected one number, or {count}, as many as --sessions has")
    return found if len(found) == count else found * count


def main(words: list[str] | None = None) -> None:
    """Print a table for each number of sessions."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", default="10000")
    options.add_argument("--queries", type=int, default=QUERIES)
    options.add_argument("--seeds", default="20", help="One number, or one for each of --sessions.")
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument("--pairs", default="36", help="One number, or one for each of --sessions.")
    options.add_argument("--curve", choices=CURVES, default="true")
    options.add_argument("--user", default="pbm")
    options.add_argument("--world", type=int, default=WORLD)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--figure", type=Path, help="Draw error against sessions here (.svg).")
    options.add_argument("--rows", type=Path, help="Every single estimate, as JSON.")
    given = options.parse_args(words)
    counts = numbers(given.sessions)
    try:
        seeds_of, pairs_of = (for_each(each, len(counts)) for each in (given.seeds, given.pairs))
    except ValueError as error:
        options.error(str(error))
    by_sessions: dict[int, list[dict[str, Any]]] = {}
    for sessions, many, pairs in zip(counts, seeds_of, pairs_of, strict=True):
        work = partial(
            one_seed,
            world=given.world,
            sessions=sessions,
            queries=given.queries,
            curve=given.curve,
            user=given.user,
            pairs=pairs,
        )
        seeds = range(given.first_seed, given.first_seed + many)
        with ProcessPoolExecutor(given.processes) as pool:
            rows = [row for each in pool.map(work, seeds) for row in each]
        by_sessions[sessions] = rows
        print(
            f"\nworld {given.world}, {sessions:,} sessions, {given.queries:,} queries, curve "
            f"{given.curve}, user {given.user}, {many} seeds, {len(rows) // many} pairs"
        )
        for line in (HEADER, *table(rows)):
            print(" | ".join(line), flush=True)
        if given.rows is not None:
            given.rows.write_text(json.dumps(by_sessions, default=float))
    if given.figure is not None:
        draw(by_sessions, given.figure)


def draw(by_sessions: dict[int, list[dict[str, Any]]], path: Path) -> None:
    """Root mean squared error of every estimator against sessions."""
    from dualrank.report import LEGEND, LIGHT, log_scale, new_figure, title, write_figure

    every = [{(row["new"], row["old"]) for row in rows} for rows in by_sessions.values()]
    common = set.intersection(*every)
    by_sessions = {
        count: [row for row in rows if (row["new"], row["old"]) in common]
        for count, rows in by_sessions.items()
    }
    figure, (ax,) = new_figure(1)
    counts = np.array(sorted(by_sessions))
    for name in ESTIMATORS:
        errors = [
            np.sqrt(_mse(by_sessions[n], name))
            if all(name in row["estimates"] for row in by_sessions[n])
            else np.nan
            for n in counts
        ]
        if np.isfinite(errors).any():
            color, line, mark = LOOKS[name]
            wide = 3.5 if name == "ips" else 1.6
            look: dict[str, Any] = {"color": LIGHT[color], "ls": line, "marker": mark}
            ax.plot(counts, errors, label=name, lw=wide, ms=4.5, **look)
    ax.set_xscale("log")
    log_scale(ax)
    ax.set_xlabel("sessions")
    title(ax, "Error in clicks per session")
    ax.legend(**LEGEND)
    write_figure(figure, path)


if __name__ == "__main__":
    main()
