"""What was tried for logs on which dual learning fails, beside what `auto` does.

Run as `python -m benchmarks.remedies [SEEDS]`. On scenarios of `dualrank reproduce scenarios` the
same network is trained with

- `naive`, `truth` and `dla`, as there;
- `dropout`: the ranker of dual learning sees position in half of its clicks only;
- `clipped`: dual learning with no weight above 4;
- `anchored`: dual learning with φ drawn to the harvested curve, where there is one;
- `adjusted`: inverse propensity weighting with a curve that adjusts for the logging score. An
  imitation of the logging ranker is learned from what was displayed where, and examination is
  fitted to P(k | a click) ∝ e_k h(s_k), with h free in twenty steps of the imitated score s: given
  that score, the position says nothing more about relevance (the backdoor of Luo et al. 2024, in a
  form that needs no training of its own).

Printed are nDCG@10 on test queries, the error of the weights, and the lead on held-out clicks over
the naive ranker in standard errors: mean and standard deviation over seeds.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import dualrank as dr
from dualrank.corrections import Basis, DualLearning, softmax_signal
from dualrank.corrections.position_models import PositionVariables
from dualrank.evaluation.click_check import ClickCheck, hold_out
from dualrank.learning import EstimatedRelevance, Plan
from dualrank.learning.auto import harvested_propensity
from dualrank.rankers import Shown, Signal
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.method_comparison import HELD_OUT, STEPS
from dualrank.reproduce.scenario_logs import SCENARIOS, ScenarioData, scenario_data
from dualrank.reproduce.scenario_rankers import RANKER

NAMES = ("hidden-features", "network-logger", "three-networks", "initial-ranker")
STEPS_OF_SCORE = 20
ITERATIONS = 300
PULL = 0.1


class Dropout(DualLearning):
    """Every click counts half by its weight, and half as if position did not matter."""

    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """The mean over lists with and without the position."""
        weighted = super().signal(scores, shown)
        assert weighted.targets is not None
        targets = (shown.labels + weighted.targets) / 2
        return softmax_signal(scores, targets, shown, weighted.evidence)


class AnchoredVariables(PositionVariables):
    """φ with a pull towards a given curve, per session: λ (φ − log e)."""

    def __init__(self, anchor: dr.Propensity) -> None:
        super().__init__(anchor.depth)
        self._anchor = torch.from_numpy(np.log(anchor.examination)).float()

    def gradients(self, slope: Tensor, drawn: int) -> list[Tensor]:
        """The slope of the clicks and that of the pull."""
        table = self().detach()
        return [slope[0] + PULL * drawn * (table[0] - table[0, 0] - self._anchor)]


def anchored_to(curve: dr.Propensity) -> type[DualLearning]:
    """Dual learning that keeps near a curve."""

    class Anchored(DualLearning):
        @classmethod
        def build(cls, basis: Basis) -> DualLearning:
            return cls(basis.depth, basis.settings, AnchoredVariables(curve))

    return Anchored


@dataclass
class Stand:
    """One log, and what a trial needs of it."""

    data: ScenarioData
    rest: dr.ClickLog
    held_out: dr.ClickLog
    plan: Plan

    @classmethod
    def of(cls, name: str, seed: int) -> Stand:
        """The log of a scenario, as `reproduce scenarios` makes it."""
        data = scenario_data(name, Collection(), seed)
        rest, held_out = hold_out(data.log, HELD_OUT, seed)
        assert held_out is not None
        settings = dr.TrainingSettings(steps=STEPS, seed=seed)
        plan = Plan(method="naive", ranker=RANKER, settings=settings, validation=HELD_OUT)
        return cls(data, rest, held_out, plan)

    def trials(self) -> dict[str, dict[str, Any]]:
        """All that is tried here, as options of a plan."""
        trials: dict[str, dict[str, Any]] = {
            "naive": {"method": "naive"},
            "truth": {"method": "ipw", "propensity": self.data.truth},
            "dla": {"method": "dla"},
            "dropout": {"method": Dropout},
            "clipped": {"method": "dla", "max_weight": 4.0},
            "adjusted": {"method": "ipw", "propensity": self.adjusted()},
        }
        harvested = harvested_propensity(self.rest, self.plan.settings.seed)
        if isinstance(harvested, dr.Propensity):
            trials["anchored"] = {"method": anchored_to(harvested)}
            trials["harvested"] = {"method": "ipw", "propensity": harvested}
        return trials

    def imitated(self, place: NDArray[np.float32]) -> NDArray[np.float32]:
        """The scores of a ranker that learns where documents were displayed."""
        source = EstimatedRelevance(self.rest, place)
        plan = replace(self.plan, validation=0)
        return dr.fit(source, self.data.train, plan).predict(self.data.train)

    def adjusted(self) -> dr.Propensity:
        """Examination with the score of the logging ranker accounted for."""
        lists = self.rest.lists
        shown = np.broadcast_to(1 / np.arange(1, lists.depth + 1), lists.documents.shape)
        pairs, weights = lists.documents[lists.mask], self.rest.sessions_per_list[:, None]
        sessions = np.broadcast_to(weights, lists.documents.shape)[lists.mask]
        count = self.data.train.document_count
        total = np.bincount(pairs, sessions, count)
        place = np.bincount(pairs, sessions * shown[lists.mask], count) / np.maximum(total, 1)
        imitated = self.imitated(place.astype(np.float32))
        scores = lists.gather(imitated)
        edges = np.quantile(scores[lists.mask], np.linspace(0, 1, STEPS_OF_SCORE + 1)[1:-1])
        step = np.searchsorted(edges, scores)
        clicks = torch.from_numpy(self.rest.clicks_per_list.astype(np.float64)) * torch.from_numpy(
            lists.mask
        )
        phi = torch.zeros(lists.depth, dtype=torch.float64, requires_grad=True)
        height = torch.zeros(STEPS_OF_SCORE, dtype=torch.float64, requires_grad=True)
        steps, mask = torch.from_numpy(step), torch.from_numpy(lists.mask)
        optimizer = torch.optim.LBFGS(
            [phi, height], max_iter=ITERATIONS, line_search_fn="strong_wolfe"
        )

        def loss() -> Tensor:
            optimizer.zero_grad()
            logits = (phi + height[steps]).masked_fill(~mask, -torch.inf)
            value = -(clicks * torch.log_softmax(logits, 1).masked_fill(~mask, 0)).sum()
            value = value / clicks.sum()
            value.backward()  # type: ignore[no-untyped-call]
            return value

        optimizer.step(loss)  # type: ignore[no-untyped-call]
        return dr.Propensity.of(torch.exp(phi - phi[0]).detach().numpy(), method="adjusted")


def main() -> None:
    """Print a table per scenario."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    torch.set_num_threads(1)
    for name in NAMES:
        print(f"\n{SCENARIOS[name].title}, {seeds} seeds")
        print(f"{'':<12}{'nDCG@10':>18}{'MSE of weights':>18}{'lead, in errors':>18}")
        rows: dict[str, list[tuple[float, float, float]]] = {}
        for seed in range(seeds):
            stand = Stand.of(name, seed)
            check, naive = ClickCheck(stand.held_out), None
            train, test, truth = stand.data.train, stand.data.test, stand.data.truth
            for trial, options in stand.trials().items():
                model = dr.fit(stand.data.log, train, stand.plan.with_options(**options))
                seen = model.predict(train)
                naive = seen if naive is None else naive
                quality = dr.evaluate(model.predict(test), test, ["ndcg@10"])["ndcg@10"]
                believed = model.propensity
                curve = np.ones(truth.depth) if believed is None else believed.examination
                error = dr.inverse_propensity_mse(curve, truth.examination)
                lead = check.lead(seen, over=naive).in_errors
                rows.setdefault(trial, []).append((quality, error, lead))
        for trial, found in rows.items():
            values = np.array(found)
            mean, spread = values.mean(axis=0), values.std(axis=0, ddof=min(1, seeds - 1))
            print(f"{trial:<12}{mean[0]:>10.4f} ± {spread[0]:.4f}", end="")
            print(f"{mean[1]:>10.3f} ± {spread[1]:.3f}{mean[2]:>10.1f} ± {spread[2]:.1f}")


if __name__ == "__main__":
    main()
