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

import numpy as np
import torch
from dualrank.corrections.weighting import DualLearning, GivenPropensity, NoCorrection, Weighting
from numpy.typing import NDArray
from torch import Tensor

from dualrank.corrections.position_models import PositionVariables
from dualrank.data.click_log import ClickLog
from dualrank.data.scaling import Scaler
from dualrank.evaluation.click_check import ClickCheck
from dualrank.evaluation.evaluator import evaluate
from dualrank.evaluation.propensity_error import inverse_propensity_mse
from dualrank.learning.auto import harvested_propensity
from dualrank.learning.feedback import EstimatedRelevance, LoggedClicks
from dualrank.learning.fit import hold_out
from dualrank.learning.loop import Trainer
from dualrank.learning.validation import OnHeldOutClicks
from dualrank.propensity.propensity import Propensity
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.scenarios import SCENARIOS, Scenarios, Scene, set_up
from dualrank.settings import TrainingSettings

NAMES = ("hidden-features", "network-logger", "three-networks", "initial-ranker")
EXPERIMENT = Scenarios()
STEPS_OF_SCORE = 20
ITERATIONS = 300
PULL = 0.1


class Dropout(DualLearning):
    """Every click counts half by its weight, and half as if position did not matter."""

    def weights(self, contexts: Tensor | None = None) -> Tensor:
        """The mean over lists with and without the position."""
        return (1 + super().weights(contexts)) / 2


class AnchoredVariables(PositionVariables):
    """φ with a pull towards a given curve, per session: λ (φ − log e)."""

    def __init__(self, anchor: Propensity) -> None:
        super().__init__(anchor.depth)
        self._anchor = torch.from_numpy(np.log(anchor.examination)).float()

    def gradients(self, table: Tensor, slope: Tensor, drawn: int) -> list[Tensor]:
        """The slope of the clicks and that of the pull."""
        away = table.detach()[0] - table.detach()[0, 0] - self._anchor
        return [slope[0] + PULL * drawn * away]


@dataclass
class Stand:
    """One log, and what a trial needs of it."""

    scene: Scene
    rest: ClickLog
    held_out: ClickLog
    settings: TrainingSettings

    def __post_init__(self) -> None:
        self._scaler = Scaler.fit(self.scene.train.features)
        self._features = self._scaler.transform(self.scene.train.features)

    @classmethod
    def of(cls, name: str, seed: int) -> Stand:
        """The log of a scenario, as `reproduce scenarios` makes it."""
        scene = set_up(name, Collection(), seed)
        rest, held_out = hold_out(scene.log, EXPERIMENT.held_out, seed)
        assert held_out is not None
        settings = replace(EXPERIMENT.settings, seed=seed)
        return cls(scene, rest, held_out, settings)

    def trained(
        self, weighting: Weighting, relevance: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The scores of a ranker so trained, on training and on test documents."""
        network = EXPERIMENT.ranker.build(self._scaler.output_count, self.settings.seed)
        features = torch.from_numpy(self._features)
        if relevance is not None:
            feedback = EstimatedRelevance(self.rest, relevance)
            Trainer(network, features, feedback, weighting, self.settings).run()
        else:
            clicks = LoggedClicks(self.rest)
            validation = OnHeldOutClicks(
                self._features, self.held_out, weighting.propensity, self.settings.max_weight
            )
            Trainer(
                network, features, clicks, weighting, self.settings, validation=validation
            ).run()
        test = self._scaler.transform(self.scene.test.features)
        return network.predict(self._features), network.predict(test)

    def weightings(self) -> dict[str, Weighting]:
        """All that is tried here."""
        depth = self.scene.log.lists.depth
        trials: dict[str, Weighting] = {
            "naive": NoCorrection(),
            "truth": GivenPropensity(self.scene.truth, depth),
            "dla": DualLearning(depth, self.settings),
            "dropout": Dropout(depth, self.settings),
            "clipped": DualLearning(depth, replace(self.settings, max_weight=4.0)),
            "adjusted": GivenPropensity(self.adjusted(), depth),
        }
        harvested = harvested_propensity(self.rest, self.settings.seed)
        if isinstance(harvested, Propensity):
            model = AnchoredVariables(harvested)
            trials["anchored"] = DualLearning(depth, self.settings, model)
            trials["harvested"] = GivenPropensity(harvested, depth)
        return trials

    def adjusted(self) -> Propensity:
        """Examination with the score of the logging ranker accounted for."""
        lists = self.rest.lists
        shown = np.broadcast_to(1 / np.arange(1, lists.depth + 1), lists.documents.shape)
        pairs, weights = lists.documents[lists.mask], self.rest.sessions_per_list[:, None]
        sessions = np.broadcast_to(weights, lists.documents.shape)[lists.mask]
        count = self.scene.train.document_count
        total = np.bincount(pairs, sessions, count)
        place = np.bincount(pairs, sessions * shown[lists.mask], count) / np.maximum(total, 1)
        imitated, _ = self.trained(NoCorrection(), place.astype(np.float32))
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
        return Propensity.of(torch.exp(phi - phi[0]).detach().numpy(), method="adjusted")


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
            check = ClickCheck(stand.held_out)
            naive = None
            for trial, weighting in stand.weightings().items():
                seen, scores = stand.trained(weighting)
                naive = seen if naive is None else naive
                quality = evaluate(scores, stand.scene.test, ["ndcg@10"])["ndcg@10"]
                believed = weighting.propensity()
                curve = (
                    np.ones(stand.scene.truth.depth) if believed is None else believed.examination
                )
                error = inverse_propensity_mse(curve, stand.scene.truth.examination)
                lead = check.lead(seen, over=naive).in_errors
                rows.setdefault(trial, []).append((quality, error, lead))
        for trial, found in rows.items():
            values = np.array(found)
            mean, spread = values.mean(axis=0), values.std(axis=0, ddof=min(1, seeds - 1))
            print(f"{trial:<12}{mean[0]:>10.4f} ± {spread[0]:.4f}", end="")
            print(f"{mean[1]:>10.3f} ± {spread[1]:.3f}{mean[2]:>10.1f} ± {spread[2]:.1f}")


if __name__ == "__main__":
    main()
