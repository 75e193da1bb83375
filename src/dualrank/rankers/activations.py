"""What hidden units of a network do with their sum a, and the derivative, read off h = g(a).

    elu         h = a where a > 0, e^a − 1 elsewhere    g' = 1 where h > 0, h + 1 elsewhere
    relu        h = max(a, 0)                           g' = 1 where h > 0, 0 elsewhere
    leaky-relu  h = a where a > 0, a/100 elsewhere      g' = 1 where h > 0, 1/100 elsewhere
    tanh        h = tanh a                              g' = 1 − h²
    sigmoid     h = 1 / (1 + e^−a)                      g' = h (1 − h)

No pre-activation has to be kept for the backward pass. The paper has elu; the others are there
because search engines run them: Solr knows all of them but elu.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

Name = Literal["elu", "relu", "leaky-relu", "tanh", "sigmoid"]
LEAK = 0.01
_aten = torch.ops.aten


class Activation(NamedTuple):
    """`apply(a, scratch)` puts g(a) in the place of a; `slope(δ, h)` puts δ · g' there for δ."""

    apply: Callable[[Tensor, Tensor], object]
    slope: Callable[[Tensor, Tensor], Tensor]


def _elu(a: Tensor, scratch: Tensor) -> None:
    """elu in place, as max(a, min(e^a − 1, 0)).

    It differs from torch's own by rounding and takes about half the time, which counts in a small
    network (`python -m benchmarks.training`).
    """
    torch.exp(a, out=scratch)
    torch.maximum(a, scratch.sub_(1).clamp_(max=0), out=a)


ACTIVATIONS: dict[str, Activation] = {
    "elu": Activation(
        _elu,
        lambda delta, h: _aten.elu_backward.grad_input(
            delta, 1.0, 1.0, 1.0, True, h, grad_input=delta
        ),
    ),
    "relu": Activation(
        lambda a, _: a.clamp_(min=0),
        lambda delta, h: _aten.threshold_backward.grad_input(delta, h, 0, grad_input=delta),
    ),
    "leaky-relu": Activation(
        lambda a, _: functional.leaky_relu_(a, LEAK),
        lambda delta, h: _aten.leaky_relu_backward.grad_input(
            delta, h, LEAK, True, grad_input=delta
        ),
    ),
    "tanh": Activation(
        lambda a, _: a.tanh_(),
        lambda delta, h: _aten.tanh_backward.grad_input(delta, h, grad_input=delta),
    ),
    "sigmoid": Activation(
        lambda a, _: a.sigmoid_(),
        lambda delta, h: _aten.sigmoid_backward.grad_input(delta, h, grad_input=delta),
    ),
}
