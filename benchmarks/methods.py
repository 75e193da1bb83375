"""What methods cost beside dual learning, and what distilling `auto` into one small network loses.

Run as `python -m benchmarks.methods [--distil]`, on the log of 100,000 sessions of `dualrank
reproduce methods`, with its network of 64 and 32 units.

- *A step* of every correction, in turn with one of dual learning: the median ratio of times.
- *A training* by `auto` against one by dual learning with as many steps.
- With `--distil` the sum that `auto` makes is exact, and as large as its parts together. A network
  of the size of one part is taught its scores instead, over all candidates of the training queries,
  displayed or not, and both are judged on test queries; printed is also how long the sum takes to
  score beside one part.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import nn

import dualrank as dr
from benchmarks.timing import seconds
from dualrank.corrections import Basis
from dualrank.learning import METHODS, Loop, Plan, fit_best
from dualrank.learning.feedback import CorrectedClicks
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.method_comparison import HELD_OUT, STEPS
from dualrank.reproduce.scenario_logs import ScenarioData, scenario_data
from dualrank.reproduce.scenario_rankers import RANKER

SCENARIO, WORLD, SEED = "100k-sessions", 7, 100
STEPS_IN_TURN, ROUNDS = 20, 41
TRAINING_STEPS = 500
STUDENT_STEPS, STUDENT_QUERIES, STUDENT_RATE = 20_000, 64, 1e-3


def loop_of(data: ScenarioData, method: str, loss: str | None = None) -> Loop:
    """The loop of a method before its first step, on the whole log."""
    way = METHODS[method]
    settings = dr.TrainingSettings().suited(way.correction.suits)
    ground = np.zeros(data.log.lists.mask.shape, dtype=np.float32) if way.ground else None
    features = data.train.features
    truth = data.truth if "propensity" in way.needs else None
    basis = Basis(
        data.log.lists.depth, settings, data.log, truth, None, None, loss, features, ground
    )
    correction = way.correction.build(basis)
    labels = correction.labels(data.log)
    feedback = (
        way.feedback(data.log, data.train, None, ground)
        if labels is None
        else CorrectedClicks(data.log, labels)
    )
    ranker = RANKER.build(features.shape[1])
    return Loop(ranker, torch.from_numpy(features), feedback, correction, settings)


def steps(data: ScenarioData) -> None:
    """Every correction's step against dual learning's."""
    dual = loop_of(data, "dla")
    rows: dict[str, tuple[str, str | None]] = {
        name: (name, None) for name, way in METHODS.items() if not way.extract and name != "auto"
    }
    rows |= {f"dla, {loss} loss": ("dla", loss) for loss in ("pairwise", "lambdarank")}
    for name, (method, loss) in rows.items():
        ours = loop_of(data, method, loss)
        ratios = []
        for _ in range(ROUNDS):
            times = [seconds(partial(_walk, each)) for each in (ours, dual)]
            ratios.append(times[0] / times[1])
        low, middle, high = np.quantile(ratios[1:], [0.25, 0.5, 0.75])
        print(f"{name:<22}{middle:6.2f}   (quartiles {low:.2f} to {high:.2f})", flush=True)


def _walk(loop: Loop) -> None:
    for _ in range(STEPS_IN_TURN):
        loop.step()


def trainings(data: ScenarioData) -> None:
    """The whole of auto against dual learning, with the building of all pieces."""
    plan = plan_of(TRAINING_STEPS)
    ratios = []
    for _ in range(3):
        one = seconds(lambda: dr.fit(data.log, data.train, plan.for_method("dla")))
        ratios.append(seconds(lambda: dr.fit(data.log, data.train, plan)) / one)
    print(f"auto: {np.median(ratios):.1f} trainings of dual learning ({TRAINING_STEPS} steps)")


def plan_of(count: int) -> Plan:
    """As `reproduce methods` trains."""
    settings = dr.TrainingSettings(steps=count, seed=SEED)
    return Plan("auto", RANKER, settings, validation=HELD_OUT)


def distil(data: ScenarioData) -> None:
    """The sum, and a network of the size of one of its parts that was taught the sum's scores."""
    model, parts = fit_best(data.log, data.train, plan_of(STEPS))
    student = taught(model, data.train)
    with torch.no_grad():
        features = torch.from_numpy(model.scaler.transform(data.test.features))
        learned = student(features)[:, 0].numpy()
    for name, scores in (("sum", model.predict(data.test)), ("distilled", learned)):
        value = dr.evaluate(scores, data.test, ["ndcg@10"])["ndcg@10"]
        print(f"{name:<10} nDCG@10 {value:.4f}")
    pairs = [
        [seconds(partial(each.predict, data.test)) for each in (model, parts["naive"])]
        for _ in range(21)
    ]
    ratio = np.median([whole / part for whole, part in pairs])
    print(f"the sum of {model.training['auto']['chosen']} takes {ratio:.1f} times as long as one")


def taught(model: dr.Model, data: dr.Dataset) -> nn.Module:
    """A network that has learned the differences of a model's scores within queries."""
    torch.manual_seed(SEED)
    features = torch.from_numpy(model.scaler.transform(data.features))
    scores = model.predict(data)
    query = data.query_of_document
    centred = scores - (np.bincount(query, scores) / data.lengths)[query]
    target = torch.from_numpy((centred / centred.std()).astype(np.float32))
    sizes = (features.shape[1], *RANKER.hidden)
    layers = [m for a, b in pairwise(sizes) for m in (nn.Linear(a, b), nn.ELU())]
    network = nn.Sequential(*layers, nn.Linear(sizes[-1], 1))
    moves = torch.optim.Adam(network.parameters(), STUDENT_RATE)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(moves, STUDENT_STEPS)
    rng = np.random.default_rng(SEED)
    for _ in range(STUDENT_STEPS):
        chosen = rng.integers(len(data), size=STUDENT_QUERIES)
        rows = np.concatenate([np.arange(*data.offsets[q : q + 2]) for q in chosen])
        of = torch.from_numpy(np.repeat(np.arange(STUDENT_QUERIES), data.lengths[chosen]))
        found = network(features[rows])[:, 0]
        sums = torch.zeros(STUDENT_QUERIES).index_add(0, of, found)
        apart = found - (sums / torch.from_numpy(data.lengths[chosen]))[of] - target[rows]
        moves.zero_grad()
        (apart**2).mean().backward()
        moves.step()
        slower.step()
    return network


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--distil", action="store_true", help="what distilling would cost")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    data = scenario_data(SCENARIO, Collection("laptop", world=WORLD), SEED)
    if asked.distil:
        distil(data)
    else:
        steps(data)
        trainings(data)


if __name__ == "__main__":
    main()
