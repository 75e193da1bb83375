"""One model's side of a step: normalise the gradient, clip it, move."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from dualrank.rankers.ranker import Step
from dualrank.settings import TrainingSettings

ADAGRAD_START = 0.1


class Optimizer:
    """SGD or Adagrad over some parameters, with gradient clipping and a falling rate.

        SGD:      θ ← θ − α g
        Adagrad:  G ← G + g²,  θ ← θ − α g / √G,  from G = 0.1

    From G = 0 Adagrad's first step would have full length in every coordinate whatever the
    gradient, which overflows the relevance weights. G persists across steps and goes into
    checkpoints. A step whose gradient is not finite is left out and counted, so training never
    yields a nan.

    Weight decay is for matrices only: biases need none, and on φ it would pull the examination
    curve towards the uniform one.

    The updates are written out because on a small model `torch.optim` spends more time around them
    than in them (`python -m benchmarks.training`).
    """

    def __init__(
        self, parameters: Sequence[Tensor], rate: float, settings: TrainingSettings
    ) -> None:
        self.parameters = [parameter.detach() for parameter in parameters]
        self.left_out = 0
        self._rate = rate
        self._settings = settings
        adagrad = settings.optimizer == "adagrad"
        self._sums = [torch.full_like(p, ADAGRAD_START) for p in self.parameters if adagrad]

    def move(self, gradients: Sequence[Tensor], step: Step) -> None:
        """Move against a gradient that was summed over lists.

        `sessions` divides it by the sessions drawn (equation 11), `clicks` by Σ w c. The rate
        follows the schedule.
        """
        settings = self._settings
        by_sessions = settings.normalisation == "sessions"
        size = step.drawn if by_sessions else max(float(step.clicks), 1e-12)
        norm = math.hypot(*(float(torch.linalg.vector_norm(g)) for g in gradients)) / size
        if not math.isfinite(norm):
            self.left_out += 1
            return
        falling = 1.0 - step.done if settings.schedule == "linear" else 1.0
        scale = min(1.0, settings.gradient_clip / max(norm, 1e-12)) / size
        self._move(gradients, scale, self._rate * falling)

    @torch.no_grad()
    def _move(self, gradients: Sequence[Tensor], scale: float, rate: float) -> None:
        decay = self._settings.decay
        for index, (parameter, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            factor = scale
            if decay and parameter.ndim > 1:
                gradient, factor = gradient.mul(scale).add_(parameter, alpha=decay), 1.0
            if self._sums:
                total = self._sums[index].addcmul_(gradient, gradient, value=factor**2)
                parameter.addcdiv_(gradient, total.sqrt(), value=-rate * factor)
            else:
                parameter.add_(gradient, alpha=-rate * factor)

    def sums(self) -> dict[str, Tensor]:
        """G by name; nothing for SGD, which remembers no slope."""
        return {f"sum.{i}": total for i, total in enumerate(self._sums)}

    def state(self) -> dict[str, Tensor]:
        """Parameters, accumulators and the count of what was left out, by name."""
        tensors = {f"parameter.{i}": p for i, p in enumerate(self.parameters)}
        return tensors | self.sums() | {"left_out": torch.tensor(self.left_out)}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        for name, held in self.state().items():
            held.copy_(tensors[name])
        self.left_out = int(tensors["left_out"])
