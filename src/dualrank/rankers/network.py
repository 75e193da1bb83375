"""The paper's deep neural network, and the linear model as the network without hidden layers.

Equation (14) of the paper, with K layers of weights:

    h_0 = x
    h_k = elu(W_{k−1} h_{k−1} + b_{k−1}),  k = 1 … K

where the last h is the score. The paper applies elu to the score too, which bounds it below by
−1; `elu_output` keeps or leaves that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dualrank.errors import SettingsError

ROWS_PER_BLOCK = 16_384


@dataclass(frozen=True)
class DNN:
    """A feed-forward network with ELU; `hidden` are the sizes of its hidden layers.

    `precision="bfloat16"` computes the matrix products of training in that precision, which is
    faster where the processor has it and slower where it does not.
    """

    hidden: tuple[int, ...] = (256, 128)
    elu_output: bool = False
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if any(size < 1 for size in self.hidden):
            raise SettingsError(f"hidden layers need at least one unit each, not {self.hidden}")
        if self.precision not in ("float32", "bfloat16"):
            raise SettingsError(f"precision is float32 or bfloat16, not {self.precision!r}")

    def build(self, inputs: int, seed: int = 0) -> Network:
        """A network for this many features, initialised from the seed."""
        dtype = torch.bfloat16 if self.precision == "bfloat16" else None
        sizes = (inputs, *self.hidden, 1)
        return Network(sizes, elu_output=self.elu_output, seed=seed, dtype=dtype)


@dataclass(frozen=True)
class Linear:
    """f(x) = w · x + b."""

    def build(self, inputs: int, seed: int = 0) -> Network:
        """A linear model for this many features."""
        return Network((inputs, 1), elu_output=False, seed=seed)


class Network(nn.Module):
    """A stack of linear layers with ELU between them, trained through a written-out backward pass.

    The last layer starts at zero and the others at random: every score is then 0 and every
    relevance weight of dual learning is 1 at the first step, which is what the paper's zero start
    means, while the symmetry between hidden units is broken, without which nothing would learn.

    With `dtype=torch.bfloat16` matrix products are computed in that precision; parameters,
    gradients and scores stay float32.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        elu_output: bool = False,
        seed: int = 0,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.sizes = tuple(sizes)
        self.elu_output = elu_output
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for layer, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            weight = torch.zeros(fan_out, fan_in)
            if layer < len(sizes) - 2:
                weight.normal_(0, 1 / math.sqrt(fan_in), generator=generator)
            self.weights.append(nn.Parameter(weight))
            self.biases.append(nn.Parameter(torch.zeros(fan_out)))
        self._workspace = _Workspace(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """One score per row of `x`."""
        parameters = [*self.weights, *self.biases]
        scores: Tensor = _EluStack.apply(  # type: ignore[no-untyped-call]
            self._workspace, self.elu_output, x, *parameters
        )
        return scores

    @torch.no_grad()
    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of many documents, in blocks."""
        scores = np.empty(len(features), dtype=np.float32)
        for start in range(0, len(features), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            h = torch.from_numpy(np.ascontiguousarray(features[block])).to(self.weights[0].device)
            for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
                h = torch.addmm(bias, h, weight.t())
                if layer < len(self.weights) - 1 or self.elu_output:
                    _elu_(h, torch.empty_like(h))
            scores[block] = h[:, 0].cpu().numpy()
        return scores


class _Workspace:
    """Buffers that live from step to step: fresh memory for every layer of every step would cost
    more in page faults than the element-wise work itself.
    """

    def __init__(self, dtype: torch.dtype | None) -> None:
        self.dtype = dtype
        self.generation = 0
        self._buffers: dict[tuple[str, int], Tensor] = {}

    def take(self, name: str, layer: int, rows: int, columns: int, like: Tensor) -> Tensor:
        dtype = self.dtype or like.dtype
        held = self._buffers.get((name, layer))
        fits = held is not None and len(held) >= rows and held.shape[1] == columns
        if held is None or not fits or (held.dtype, held.device) != (dtype, like.device):
            held = torch.empty(rows, columns, dtype=dtype, device=like.device)
            self._buffers[name, layer] = held
        return held[:rows]


class _EluStack(torch.autograd.Function):
    """The whole network as one differentiable function.

    elu'(a) is read off the output h = elu(a), as 1 where h > 0 and h + 1 elsewhere, so no
    pre-activation is kept. The workspace belongs to the latest forward pass: a second one before
    the backward pass of the first would overwrite it, which the generation count catches.
    """

    @staticmethod
    def forward(
        ctx: Any, workspace: _Workspace, elu_output: bool, x: Tensor, *parameters: Tensor
    ) -> Tensor:
        half = len(parameters) // 2
        weights, biases = parameters[:half], parameters[half:]
        low = [
            (w.to(workspace.dtype), b.to(workspace.dtype)) if workspace.dtype else (w, b)
            for w, b in zip(weights, biases, strict=True)
        ]
        h = [x.to(workspace.dtype) if workspace.dtype else x]
        for layer, (weight, bias) in enumerate(low):
            out = workspace.take("h", layer, len(x), len(weight), x)
            torch.addmm(bias, h[-1], weight.t(), out=out)
            if layer < half - 1 or elu_output:
                _elu_(out, workspace.take("scratch", layer, len(x), len(weight), x))
            h.append(out)
        workspace.generation += 1
        ctx.generation, ctx.workspace, ctx.elu_output = workspace.generation, workspace, elu_output
        ctx.h, ctx.weights = h, [w for w, _ in low]
        return h[-1][:, 0].to(x.dtype, copy=True)

    @staticmethod
    def backward(ctx: Any, grad_scores: Tensor) -> tuple[Tensor | None, ...]:
        workspace, h, weights = ctx.workspace, ctx.h, ctx.weights
        if ctx.generation != workspace.generation:
            raise RuntimeError("the network ran forward again before this backward pass")
        grad_weights: list[Tensor] = [grad_scores] * len(weights)
        grad_biases: list[Tensor] = [grad_scores] * len(weights)
        delta = grad_scores[:, None].to(h[-1].dtype)
        if ctx.elu_output:
            delta = _elu_backward(delta.clone(), h[-1])
        for layer in reversed(range(len(weights))):
            grad_weights[layer] = _outer(delta, h[layer]).to(grad_scores.dtype)
            grad_biases[layer] = delta.sum(0, dtype=grad_scores.dtype)
            if layer > 0:
                below = workspace.take("d", layer, len(delta), weights[layer].shape[1], grad_scores)
                torch.mm(delta, weights[layer], out=below)
                delta = _elu_backward(below, h[layer])
        grad_x = (delta @ weights[0]).to(grad_scores.dtype) if ctx.needs_input_grad[2] else None
        return None, None, grad_x, *grad_weights, *grad_biases


def _elu_(a: Tensor, scratch: Tensor) -> None:
    """elu in place, as max(a, min(e^a − 1, 0)).

    It differs from torch's own by rounding and takes about half the time, which counts in a small
    network.
    """
    torch.exp(a, out=scratch)
    torch.maximum(a, scratch.sub_(1).clamp_(max=0), out=a)


def _outer(delta: Tensor, h: Tensor) -> Tensor:
    """δᵀh, computed with the wider side last, which is faster."""
    return delta.t() @ h if h.shape[1] >= delta.shape[1] else (h.t() @ delta).t()


def _elu_backward(delta: Tensor, h: Tensor) -> Tensor:
    """δ · elu'(a) in place of δ, from h = elu(a)."""
    return torch.ops.aten.elu_backward.grad_input(delta, 1.0, 1.0, 1.0, True, h, grad_input=delta)
