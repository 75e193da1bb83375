"""One model's side of a step: normalise the loss, clip the gradient, move."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dualrank.settings import TrainingSettings

ADAGRAD_START = 0.1


class Optimizer:
    """SGD or Adagrad over one model, with gradient clipping and a falling rate.

        SGD:      θ ← θ − α g
        Adagrad:  G ← G + g²,  θ ← θ − α g / √G,  from G = 0.1

    From G = 0 Adagrad's first step would have full length in every coordinate whatever the
    gradient, which overflows the relevance weights. G persists across steps and goes into
    checkpoints. A step whose gradient is not finite is left out and counted, so training never
    yields a nan.

    Weight decay is for matrices only: biases need none, and on φ it would pull the examination
    curve towards the uniform one.

    The updates are written out because on a small model `torch.optim` spends more time around them
    than in them.
    """

    def __init__(self, model: nn.Module, rate: float, settings: TrainingSettings) -> None:
        self.model = model
        self.left_out = 0
        self._rate = rate
        self._factor = 1.0
        self._settings = settings
        self.parameters = list(model.parameters())
        self._sums = (
            [torch.full_like(p, ADAGRAD_START, requires_grad=False) for p in self.parameters]
            if settings.optimizer == "adagrad"
            else []
        )

    def to(self, device: torch.device) -> None:
        """Follow a model that has moved."""
        self.parameters = list(self.model.parameters())
        self._sums = [total.to(device) for total in self._sums]

    def set_progress(self, done: float) -> None:
        """Tell which share of the training is done; the rate follows the schedule."""
        self._factor = 1.0 - done if self._settings.schedule == "linear" else 1.0

    def gradients(self, loss: Tensor) -> Sequence[Tensor]:
        """∂l/∂θ for every parameter."""
        return torch.autograd.grad(loss, self.parameters)

    def move(self, gradients: Sequence[Tensor], drawn: int, clicks: Tensor) -> None:
        """Move against a gradient that was summed over lists.

        `sessions` divides it by the sessions drawn (equation 11), `clicks` by Σ w c.
        """
        by_sessions = self._settings.normalisation == "sessions"
        size = drawn if by_sessions else max(float(clicks), 1e-12)
        norm = math.hypot(*(float(torch.linalg.vector_norm(g)) for g in gradients)) / size
        if not math.isfinite(norm):
            self.left_out += 1
            return
        self._move(gradients, min(1.0, self._settings.gradient_clip / max(norm, 1e-12)) / size)

    @torch.no_grad()
    def _move(self, gradients: Sequence[Tensor], scale: float) -> None:
        rate, decay = self._rate * self._factor, self._settings.weight_decay
        for index, (parameter, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            factor = scale
            if decay and parameter.ndim > 1:
                gradient, factor = gradient.mul(scale).add_(parameter, alpha=decay), 1.0
            if self._sums:
                total = self._sums[index].addcmul_(gradient, gradient, value=factor**2)
                parameter.addcdiv_(gradient, total.sqrt(), value=-rate * factor)
            else:
                parameter.add_(gradient, alpha=-rate * factor)

    def state(self) -> dict[str, Tensor]:
        """Parameters and accumulators by name."""
        tensors = {f"parameter.{i}": p.detach() for i, p in enumerate(self.parameters)}
        return tensors | {f"sum.{i}": total for i, total in enumerate(self._sums)}

    @torch.no_grad()
    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        for name, held in self.state().items():
            held.copy_(tensors[name])
