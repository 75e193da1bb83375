"""What a rare context gains by borrowing from the others, and a frequent one loses.

Run as `python -m benchmarks.contexts`. Two devices show the same lists; on one of them users read
further down. The ranker is right, so all error is that of the curves: the mean of |log ê − log e|
over positions, with the prior of `ContextualPositions` and with a curve for each device alone.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.corrections import DualLearning
from dualrank.corrections.position_models import CONTEXT_SPREAD, ContextualPositions
from dualrank.rankers import Batch, Step
from dualrank.settings import TrainingSettings

DEPTH, LISTS, FREQUENT, SEEDS, STEPS = 10, 30, 50_000, 10, 600
SETTINGS = TrainingSettings(
    schedule="constant", propensity_rate=2.0, normalisation="clicks", gradient_clip=1e9
)


def errors(rare: int, eta: float, spread: float, seed: int) -> np.ndarray:
    """The error of the frequent and of the rare device after full-batch training."""
    rng = np.random.default_rng(seed)
    users = [PositionBasedUser(eta=1.0), PositionBasedUser(eta=eta)]
    grades = rng.choice(5, (LISTS, DEPTH), p=[0.26, 0.36, 0.28, 0.08, 0.02])
    relevance = users[0].perceived_relevance(grades.astype(np.float64), 4)
    rho = np.array([user.examination(DEPTH) for user in users])
    counts = [rng.multinomial(n, np.full(LISTS, 1 / LISTS)) for n in (FREQUENT, rare)]
    clicks = [rng.binomial(n[:, None], of * relevance) for n, of in zip(counts, rho, strict=True)]
    batch = Batch(
        np.arange(2 * LISTS * DEPTH, dtype=np.int32).reshape(-1, DEPTH),
        np.concatenate(clicks).astype(float),
        FREQUENT + rare,
        contexts=np.repeat(np.array([0, 1], dtype=np.int32), LISTS),
    )
    shown = batch.to(torch.device("cpu"))
    scores = torch.from_numpy(np.log(np.tile(relevance, (2, 1))))
    sessions = {"frequent": FREQUENT, "rare": rare}
    model = ContextualPositions(DEPTH, sessions, spread=spread).double()
    dual = DualLearning(DEPTH, SETTINGS, model)
    for _ in range(STEPS):
        signal = dual.signal(scores, shown)
        dual.learn(signal.evidence, Step(batch.drawn, signal.clicks))
    wrong = np.log(model.examination() * rho[:, :1] / rho)
    return np.asarray(np.abs(wrong).mean(axis=1))


def main() -> bool:
    """Print every comparison; true if borrowing never costs more than a tenth."""
    torch.set_num_threads(1)
    print(f"{FREQUENT} sessions at η = 1 beside a rare device; means of {SEEDS} seeds")
    print(f"{'rare sessions':>14}{'its η':>7}{'rare: own curve':>18}{'borrowing':>11}", end="")
    print(f"{'frequent: own curve':>22}{'borrowing':>11}")
    fine = True
    for eta in (1.0, 1.2, 0.7):
        for rare in (100, 500, 5_000):
            both = [
                np.mean([errors(rare, eta, spread, seed) for seed in range(SEEDS)], axis=0)
                for spread in (np.inf, CONTEXT_SPREAD)
            ]
            (frequent, alone), (with_rare, borrowed) = both
            print(f"{rare:>14}{eta:>7}{alone:>18.3f}{borrowed:>11.3f}", end="")
            print(f"{frequent:>22.3f}{with_rare:>11.3f}")
            fine &= borrowed < 1.1 * alone
    return bool(fine)


if __name__ == "__main__":
    sys.exit(not main())
