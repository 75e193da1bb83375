"""Trees that learn from clicks here, and in LightGBM and XGBoost: how well they rank.

Run as `python -m benchmarks.tree_peers [--seeds 5] [--scenarios initial-ranker,cascade]
[--data mq2007,mq2008] [--learners trees-dla,lightgbm-position] [--out runs.jsonl]`. Runs that stand
in the file already are not done again, and the table is of all that stand in it.

Every learner gets the same log, and no judgement. Ours keep the best ranker by clicks that they
hold out; peers, which have nothing of the kind for biased clicks, learn from all of it. For them a
group is a session with a click, and the label of a document 1 where it was clicked; sessions with
the same clicks are one group with a weight, which is the same loss. LightGBM is given positions
(`position`), XGBoost documents in the order displayed (`lambdarank_unbiased`). Printed are nDCG@10
on test queries with its deviation over seeds, and the mean squared error of the inverse propensity
weights that were learned, 1 for the first position; XGBoost's are its `ti+`, LightGBM's the bias
factors that it logs. A second table has the leads of dual learning on trees over each other learner
of trees, on the same log: collections differ more from fold to fold than learners do.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import torch
import xgboost
from numpy.typing import NDArray

import dualrank as dr
import dualrank.reproduce.scenario_logs as scenario_logs
from dualrank.data import ClickLog, Dataset
from dualrank.rankers import RankerSettings
from dualrank.reproduce.collection import Collection

SESSIONS = 500_000
HELD_OUT = 0.1
METRIC = "ndcg@10"
LEAVES, RATE, FEATURES = 31, 0.05, 0.33
LIGHTGBM_ROUNDS, XGBOOST_ROUNDS = 100, 300
"""The better of 100 and 300 for each, on another world: stopped by held-out clicks, which are as
biased as the others, they are worse."""
SHRINKAGE, SHRUNK_ROUNDS = 300.0, 200
"""The best of 0, 30, 300 and 3,000 with 50, 100 and 200 rounds, there, where it has positions."""

Learned = tuple[NDArray[np.floating], NDArray[np.floating] | None]
"""Scores of the test documents, and examination by position."""
Data = scenario_logs.ScenarioData


def ours(method: str, ranker: RankerSettings) -> Callable[[Data, int], Learned]:
    """A method of dualrank as it is, with its own defaults."""

    def learn(data: Data, seed: int) -> Learned:
        known: dict[str, Any] = {"method": method}
        if method == "truth":
            known = {"method": "ipw", "propensity": data.truth}
        model = dr.fit(
            data.log,
            data.train,
            **known,
            ranker=ranker,
            validation=HELD_OUT,
            seed=seed,
        )
        curve = None if model.propensity is None else model.propensity.examination
        return model.predict(data.test), curve

    return learn


class Rows:
    """A log with one row per document displayed in a session, sessions with equal clicks once."""

    def __init__(self, log: ClickLog, dataset: Dataset) -> None:
        chosen = np.flatnonzero(log.clicks.any(axis=1))
        shown = log.lists.documents[log.list_of[chosen]]
        mask = shown >= 0
        self.features = dataset.features[shown[mask]]
        self.labels = log.clicks[chosen][mask].astype(np.int32)
        self.groups = mask.sum(axis=1)
        self.weights = log.counts[chosen].astype(np.float32)
        self.positions = np.nonzero(mask)[1]


def by_lightgbm(
    data: Data, seed: int, *, position: bool, shrinkage: float = 0.0, rounds: int = LIGHTGBM_ROUNDS
) -> Learned:
    """`lambdarank`."""
    lines: list[str] = []
    lightgbm.register_logger(_Lines(lines))
    settings = {
        "objective": "lambdarank",
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "feature_fraction": FEATURES,
        "lambda_l2": shrinkage,
        "num_threads": 1,
        "seed": seed,
        "verbosity": 2 if position else -1,
    }
    rows = Rows(data.log, data.train)
    dataset = lightgbm.Dataset(
        rows.features,
        rows.labels,
        group=rows.groups,
        weight=np.repeat(rows.weights, rows.groups),
        position=rows.positions if position else None,
        params=settings,
    )
    booster = lightgbm.train(settings, dataset, rounds)
    curve = np.exp(_bias_factors(lines)) if position else None
    return np.asarray(booster.predict(data.test.features)), curve


class _Lines:
    """What LightGBM logs."""

    def __init__(self, lines: list[str]) -> None:
        self.info = self.warning = lines.append


def _bias_factors(lines: list[str]) -> NDArray[np.float64]:
    """The logarithms of examination that were logged last."""
    factors: list[float] = []
    for line in lines:
        if "bias_factor" in line:
            factors = []
        elif found := re.search(r"\]\s+\d+\s+(-?[\d.e+-]+)\s*$", line):
            factors.append(float(found[1]))
    return np.array(factors)


def by_xgboost(data: Data, seed: int) -> Learned:
    """`rank:ndcg` with `lambdarank_unbiased`."""
    rows = Rows(data.log, data.train)
    matrix = xgboost.QuantileDMatrix(
        rows.features, rows.labels, group=rows.groups, weight=rows.weights, nthread=1
    )
    settings = {
        "objective": "rank:ndcg",
        "lambdarank_unbiased": True,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_depth": 0,
        "max_leaves": LEAVES,
        "eta": RATE,
        "colsample_bytree": FEATURES,
        "nthread": 1,
        "seed": seed,
    }
    booster = xgboost.train(settings, matrix, XGBOOST_ROUNDS)
    learned = json.loads(booster.save_raw("json"))["learner"]["objective"]["ti+"]
    scores = booster.predict(xgboost.DMatrix(data.test.features))
    return scores, np.array(learned[: data.log.lists.depth])


NETWORK, TREES = dr.DNN((256, 128)), dr.Trees()
PEERS = ("lightgbm", "lightgbm-position", "lightgbm-position-shrunk", "xgboost-unbiased")
LEARNERS: dict[str, Callable[[Data, int], Learned]] = {
    **{f"trees-{name}": ours(name, TREES) for name in ("naive", "dla", "likelihood", "truth")},
    "lightgbm": lambda data, seed: by_lightgbm(data, seed, position=False),
    "lightgbm-position": lambda data, seed: by_lightgbm(data, seed, position=True),
    "lightgbm-position-shrunk": lambda data, seed: by_lightgbm(
        data, seed, position=True, shrinkage=SHRINKAGE, rounds=SHRUNK_ROUNDS
    ),
    "xgboost-unbiased": by_xgboost,
    "trees-auto": ours("auto", TREES),
    **{f"network-{name}": ours(name, NETWORK) for name in ("naive", "dla", "likelihood", "auto")},
}


def data_of(scenario: str, collection: str | None, seed: int, world: int) -> Data:
    """The log of a scenario, of at most so many sessions."""
    known = scenario_logs.SCENARIOS[scenario]
    scenario_logs.SCENARIOS[scenario] = replace(known, sessions=min(SESSIONS, known.sessions))
    if collection is None:
        where = Collection("laptop", world=world)
    else:
        where = Collection(collection, Path(os.environ["DUALRANK_DATA"]), None)
    return scenario_logs.scenario_data(scenario, where, seed)


def run(learner: str, data: Data, seed: int) -> dict[str, Any]:
    """One training, judged."""
    start = time.perf_counter()
    scores, curve = LEARNERS[learner](data, seed)
    seconds = time.perf_counter() - start
    error = None
    if curve is not None and learner != "trees-truth":
        error = dr.inverse_propensity_mse(curve / curve[0], data.truth.examination[: len(curve)])
    return {
        "learner": learner,
        "seed": seed,
        METRIC: dr.evaluate(scores, data.test, [METRIC])[METRIC],
        "mse": error,
        "seconds": seconds,
    }


def table(runs: list[dict[str, Any]]) -> None:
    """Means and deviations, a row for every log."""
    logs = list(dict.fromkeys(each["log"] for each in runs))
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in runs:
        found[each["log"], each["learner"]].append(each)
    learners = [name for name in LEARNERS if any((log, name) in found for log in logs)]
    print("| log | " + " | ".join(learners) + " |")
    print("|---" * (len(learners) + 1) + "|")
    for log in logs:
        cells = []
        for learner in learners:
            of = found[log, learner]
            if not of:
                cells.append("")
                continue
            values = np.array([each[METRIC] for each in of])
            cell = (
                f"{values.mean():.4f} ± {values.std(ddof=1):.4f}"
                if len(of) > 1
                else f"{values[0]:.4f}"
            )
            errors = [each["mse"] for each in of if each["mse"] is not None]
            cells.append(cell + (f" ({np.mean(errors):.2f})" if errors else ""))
        print(f"| {log} | " + " | ".join(cells) + " |")


def leads(runs: list[dict[str, Any]]) -> None:
    """How far dual learning on trees is ahead of each peer, seed by seed: mean and deviation."""
    values = {(each["log"], each["learner"], each["seed"]): each[METRIC] for each in runs}
    print("\n| trees-dla ahead of | " + " | ".join(PEERS) + " |")
    print("|---" * (len(PEERS) + 1) + "|")
    for log in dict.fromkeys(each["log"] for each in runs):
        cells = []
        for peer in PEERS:
            ahead = [
                values[log, "trees-dla", seed] - value
                for (where, learner, seed), value in values.items()
                if (where, learner) == (log, peer) and (log, "trees-dla", seed) in values
            ]
            spread = f" ± {np.std(ahead, ddof=1):.4f}" if len(ahead) > 1 else ""
            cells.append(f"{np.mean(ahead):+.4f}{spread}" if ahead else "")
        print(f"| {log} | " + " | ".join(cells) + " |")


def main() -> None:
    """Train, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--world", type=int, default=0)
    parser.add_argument("--scenarios", default="initial-ranker")
    parser.add_argument("--data", default="")
    parser.add_argument("--learners", default=",".join(LEARNERS))
    parser.add_argument("--out", type=Path, default=None)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    runs: list[dict[str, Any]] = []
    if asked.out is not None and asked.out.exists():
        runs = [json.loads(line) for line in asked.out.read_text().splitlines()]
    done = {(each["log"], each["learner"], each["seed"]) for each in runs}
    for seed in range(asked.seed, asked.seed + asked.seeds):
        for where in asked.data.split(",") if asked.data else [None]:
            for scenario in asked.scenarios.split(","):
                log = scenario if where is None else f"{where} {scenario}"
                missing = [
                    each for each in asked.learners.split(",") if (log, each, seed) not in done
                ]
                if not missing:
                    continue
                data = data_of(scenario, where, seed, asked.world)
                for learner in missing:
                    runs.append({"log": log, **run(learner, data, seed)})
                    print(json.dumps(runs[-1]), flush=True)
                    if asked.out is not None:
                        with asked.out.open("a") as file:
                            file.write(json.dumps(runs[-1]) + "\n")
    table(runs)
    leads(runs)


if __name__ == "__main__":
    main()
