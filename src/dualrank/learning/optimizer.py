"""One model's side of a step: normalise the loss, clip the gradient, move."""

from __future__ import annotations

import logging

import torch
from torch import Tensor, nn

from dualrank.learning.settings import TrainingSettings

logger = logging.getLogger(__name__)


class Optimizer:
    """SGD or Adagrad over one model, with gradient clipping and a falling rate.

    Its state persists across steps and goes into checkpoints. Adagrad starts its accumulator at
    0.1: from zero its first step has full length in every coordinate whatever the gradient, which
    overflows the relevance weights. A step whose gradient is not finite is left out and counted,
    so training never yields a nan.
    """

    def __init__(self, model: nn.Module, rate: float, settings: TrainingSettings) -> None:
        self.model = model
        self.left_out = 0
        self._rate = rate
        self._settings = settings
        self._parameters = list(model.parameters())
        decay = settings.weight_decay
        if settings.optimizer == "sgd":
            self._torch: torch.optim.Optimizer = torch.optim.SGD(
                self._parameters, lr=rate, weight_decay=decay
            )
        else:
            self._torch = torch.optim.Adagrad(
                self._parameters, lr=rate, weight_decay=decay, initial_accumulator_value=0.1
            )

    def set_progress(self, done: float) -> None:
        """Tell which share of the training is done; the rate follows the schedule."""
        factor = 1.0 - done if self._settings.schedule == "linear" else 1.0
        self._torch.param_groups[0]["lr"] = self._rate * factor

    def step(self, loss: Tensor, drawn: int, weighted_labels: Tensor) -> None:
        """Move against the gradient of a loss that was summed over lists.

        `sessions` divides by the sessions drawn (equation 10), `clicks` by Σ w c.
        """
        by_sessions = self._settings.normalisation == "sessions"
        loss = loss / (drawn if by_sessions else weighted_labels.sum().clamp(min=1e-12))
        self._torch.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self._parameters, self._settings.gradient_clip)
        if torch.isfinite(norm):
            self._torch.step()
        else:
            self.left_out += 1
            logger.warning("left out a step whose gradient is not finite (norm %s)", norm.item())

    def state(self) -> dict[str, Tensor]:
        """Parameters and accumulators by name."""
        tensors = {f"parameter.{i}": p.detach() for i, p in enumerate(self._parameters)}
        for i, parameter in enumerate(self._parameters):
            for name, value in self._torch.state.get(parameter, {}).items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer.{i}.{name}"] = value
        return tensors

    @torch.no_grad()
    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        for i, parameter in enumerate(self._parameters):
            parameter.copy_(tensors[f"parameter.{i}"])
            prefix = f"optimizer.{i}."
            held = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
            if held:
                self._torch.state[parameter].update({k: v.clone() for k, v in held.items()})
