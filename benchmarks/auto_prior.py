"""What `auto` should believe before held-out clicks speak, on logs of few queries.

Run as `python -m benchmarks.auto_prior [SEEDS] [--data mq2007,…]`, with `DUALRANK_DATA`.
From the training queries of a collection (of MQ2007, those of fold 1) 400 are drawn, and as many as
800 others to judge by, so that no query of the same split's test is looked at. The log is that of
the initial ranker, with 125 sessions per query. Compared are the initial ranker, the candidates of
`auto`, their sums under several priors of equal strength, and what more training would give:

- *three hold-outs*: the mean of the weights of three trainings, each with other queries held out;
- *three added up*: the rankers of these trainings added up too.

The settings of `auto` were chosen by this and by the logs of world 7 (docs/methods.md).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import dualrank as dr
from dualrank.data import Splits, load_public
from dualrank.evaluation.click_check import hold_out
from dualrank.learning import Plan, fit_best
from dualrank.learning.auto import prior_shares
from dualrank.learning.combination import HeldOut, add_up, weigh
from dualrank.learning.logging_scores import Ground
from dualrank.reproduce.collection import TEXTS, Collection
from dualrank.reproduce.method_comparison import HELD_OUT, STEPS
from dualrank.reproduce.scenario_logs import ScenarioData, scenario_data
from dualrank.reproduce.scenario_rankers import RANKER

QUERIES, JUDGED, FIRST_SEED, HOLD_OUTS = 400, 800, 100, 3
GROUNDED, LIKELIHOOD, NAIVE = "grounded", "likelihood", "naive"
PRIORS = {
    "grounded alone": {GROUNDED: 1.0},
    "and naive": {GROUNDED: 0.5, NAIVE: 0.5},
    "and likelihood": {GROUNDED: 0.5, LIKELIHOOD: 0.5},
    "all three": dict.fromkeys((GROUNDED, LIKELIHOOD, NAIVE), 1 / 3),
}


@dataclass(frozen=True)
class FewQueries:
    """Some training queries of a collection to learn from, and others to judge by."""

    name: str
    root: Path

    @property
    def scaling(self) -> str:
        """As the experiments scale it."""
        return Collection(self.name, self.root).scaling

    def load(self, seed: int) -> Splits:
        """Other queries for every seed."""
        if self.name in TEXTS:
            queries = Collection(self.name, self.root).load(seed).train
        else:
            queries = load_public(self.name, self.root, 1).train
        order = np.random.default_rng([seed, 5]).permutation(len(queries))
        judged = queries.take(order[QUERIES : QUERIES + JUDGED])
        return Splits(queries.take(order[:QUERIES]), judged, judged)


class Candidates:
    """What one run of `auto` trained, and the clicks that it held out."""

    def __init__(self, data: ScenarioData, seed: int) -> None:
        self.data = data
        settings = dr.TrainingSettings(steps=STEPS, seed=seed)
        plan = Plan("auto", RANKER, settings, validation=HELD_OUT)
        _, self.models = fit_best(data.log, data.train, plan)
        self.names = (GROUNDED, LIKELIHOOD, NAIVE)
        rest, held_out = hold_out(data.log, HELD_OUT, seed)
        assert held_out is not None
        self.clicks = int(rest.clicks_per_list.sum())
        ground = Ground.of(self.models["imitation"], data.log.lists, data.train)
        self.held_out = HeldOut(held_out, data.train, ground, reads=False)

    def weights(self, shares: Mapping[str, float]) -> dict[str, float]:
        """Weights of the candidates under a prior."""
        return weigh({name: self.models[name] for name in self.names}, self.held_out, shares)

    def scores(self, weights: Mapping[str, float]) -> np.ndarray:
        """Scores of the judged documents."""
        return add_up(self.models, weights).predict(self.data.test).astype(np.float64)


def compare(data: ScenarioData, seed: int) -> dict[str, float]:
    """nDCG@10 on the judged queries by everything that is compared."""
    runs = [Candidates(data, seed + 1_000 * k) for k in range(HOLD_OUTS)]
    first = runs[0]
    usual = prior_shares(GROUNDED, first.clicks)
    found = {"initial": data.logged} | {n: first.models[n].predict(data.test) for n in first.names}
    found |= {name: first.scores(first.weights(shares)) for name, shares in PRIORS.items()}
    found["auto"] = first.scores(first.weights(usual))
    all_weights = [run.weights(usual) for run in runs]
    mean = {
        name: float(np.mean([weights.get(name, 0.0) for weights in all_weights]))
        for name in first.names
    }
    found["three hold-outs"] = first.scores({n: w for n, w in mean.items() if w})
    each = [run.scores(weights) for run, weights in zip(runs, all_weights, strict=True)]
    found["three added up"] = np.sum([scores / scores.std() for scores in each], axis=0)
    return {
        name: dr.evaluate(scores, data.test, ["ndcg@10"])["ndcg@10"]
        for name, scores in found.items()
        if scores is not None
    }


def main() -> None:
    """Print a row for every collection and seed, and the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=3)
    parser.add_argument("--data", default="nfcorpus,msrd-movies,stanford-web,mq2007")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if "DUALRANK_DATA" not in os.environ:
        parser.error("DUALRANK_DATA must name the folder above the public collections")
    root = Path(os.environ["DUALRANK_DATA"])
    for name in asked.data.split(","):
        rows = []
        for seed in range(FIRST_SEED, FIRST_SEED + asked.seeds):
            few = FewQueries(name, root)
            data = scenario_data("initial-ranker", few, seed)  # type: ignore[arg-type]
            rows.append(compare(data, seed))
            if len(rows) == 1:
                print(f"{name:<16}" + "".join(f"{column:>16}" for column in rows[0]))
            print(
                f"  seed {seed:<9}" + "".join(f"{v:16.4f}" for v in rows[-1].values()), flush=True
            )
        means = {column: np.mean([row[column] for row in rows]) for column in rows[0]}
        print(f"  {'mean':<14}" + "".join(f"{value:16.4f}" for value in means.values()), flush=True)


if __name__ == "__main__":
    main()
