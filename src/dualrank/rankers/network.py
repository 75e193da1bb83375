"""The paper's deep neural network, and the linear model as the network without hidden layers.

Equation (14) of the paper, with K layers of weights:

    h_0 = x
    h_k = elu(W_{k−1} h_{k−1} + b_{k−1}),  k = 1 … K

where the last h is the score. The paper applies elu to the score too, which bounds it below by
−1; `elu_output` keeps or leaves that. Hidden layers may have another activation
(`activations.py`), for engines that have no elu.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dualrank.errors import SettingsError
from dualrank.rankers.activations import ACTIVATIONS, Name
from dualrank.rankers.batch import Shown
from dualrank.rankers.optimizer import Optimizer
from dualrank.rankers.ranker import Layer, Ranker, RankerSettings, Signal, Step, check_shapes
from dualrank.settings import TrainingSettings

ROWS_PER_BLOCK = 4_096
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}


class Network(Ranker):
    """A stack of linear layers with ELU, or another activation, between them.

    The last layer starts at zero and the others at random: every score is then 0 and every
    relevance weight of dual learning is 1 at the first step, which is what the paper's zero start
    means, while the symmetry between hidden units is broken, without which nothing would learn.

    With `dtype=torch.bfloat16` matrix products of training are computed in that precision;
    parameters, gradients and scores stay float32.

    The backward pass is written out, without autograd: at the paper's size a step of that costs a
    third more than its matrix products, this one about a tenth (`python -m benchmarks.training`).
    elu'(a) is read off the output h = elu(a), as 1 where h > 0 and h + 1 elsewhere, so no
    pre-activation is kept.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        elu_output: bool = False,
        activation: str = "elu",
        seed: int = 0,
        dtype: torch.dtype | None = None,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.sizes = tuple(sizes)
        self.elu_output = elu_output
        self.activation = activation
        self.weights: list[Tensor] = []
        self.biases: list[Tensor] = []
        for layer, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            weight = torch.zeros(fan_out, fan_in)
            if layer < len(sizes) - 2:
                weight.normal_(0, 1 / math.sqrt(fan_in), generator=generator)
            self.weights.append(weight)
            self.biases.append(torch.zeros(fan_out))
        self._dtype = dtype
        self._workspace = _Workspace()
        self._features = torch.empty(0, self.sizes[0])
        self._gathered = self._features
        self._run: list[Tensor] = []
        self._optimizer: Optimizer | None = None

    def start(
        self,
        features: Tensor,
        settings: TrainingSettings,
        queries: NDArray[np.int32] | None = None,
    ) -> None:
        """Move to where the features are."""
        self._to(features.device)
        self._features = features
        parameters = [*self.weights, *self.biases]
        self._optimizer = Optimizer(parameters, settings.rate, settings)

    def score(self, shown: Shown) -> Tensor:
        """Row by row; padding is never scored."""
        count = len(shown.rows)
        if len(self._gathered) < count:
            self._gathered = self._features.new_empty(count, self.sizes[0])
        matrix = self._features if shown.features is None else shown.features
        x = torch.index_select(matrix, 0, shown.rows, out=self._gathered[:count])
        return shown.lay_out(self.forward(x))

    def evidence(self, shown: Shown, signal: Signal) -> list[Tensor]:
        """∂loss/∂θ for every parameter."""
        return self.backward(shown.pick(signal.slope))

    def move(self, evidence: Sequence[Tensor], step: Step) -> None:
        """A step of gradient descent."""
        assert self._optimizer is not None, "a ranker moves after it was started"
        self._optimizer.move(evidence, step)

    def finish(self) -> None:
        """Come back to the processor, and let go of the training data."""
        self._to(torch.device("cpu"))
        self._features = self._gathered = torch.empty(0, self.sizes[0])
        self._workspace, self._run = _Workspace(), []

    def forward(self, x: Tensor) -> Tensor:
        """One score per row of `x`; the layers are kept for `backward` until the next pass."""
        self._run = self._layers(x, self._workspace, self._dtype)
        return self._run[-1][:, 0].to(x.dtype, copy=True)

    def _layers(
        self, x: Tensor, workspace: _Workspace, dtype: torch.dtype | None = None
    ) -> list[Tensor]:
        """h_0 … h_K, in buffers that the workspace's next pass overwrites."""
        h = [x.to(dtype) if dtype else x]
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            out = workspace.take("h", layer, len(x), len(weight), h[-1])
            if dtype:
                weight, bias = weight.to(dtype), bias.to(dtype)
            torch.addmm(bias, h[-1], weight.t(), out=out)
            activation = self._after(layer)
            if activation is not None:
                scratch = workspace.take("scratch", layer, len(x), len(weight), out)
                ACTIVATIONS[activation].apply(out, scratch)
            h.append(out)
        return h

    def backward(self, slope: Tensor) -> list[Tensor]:
        """∂loss/∂θ of the last forward pass, weights first, from ∂loss/∂score of its rows."""
        h = self._run
        weight_slopes, bias_slopes = [], []
        delta = slope[:, None].to(h[-1].dtype)
        if self.elu_output:
            delta = ACTIVATIONS["elu"].slope(delta.clone(), h[-1])
        for layer in reversed(range(len(self.weights))):
            weight_slopes.append(_outer(delta, h[layer]).to(slope.dtype))
            bias_slopes.append(delta.sum(0, dtype=slope.dtype))
            if layer > 0:
                weight = self.weights[layer].to(delta.dtype)
                below = self._workspace.take("d", layer, len(delta), weight.shape[1], delta)
                torch.mm(delta, weight, out=below)
                delta = ACTIVATIONS[self.activation].slope(below, h[layer])
        return [*reversed(weight_slopes), *reversed(bias_slopes)]

    def predict(
        self, features: NDArray[np.float32], offsets: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Scores of many documents, in blocks; several threads may ask at once."""
        return self._in_blocks(features, layer=-1)[:, 0]

    def last_hidden(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the last hidden layer makes of documents."""
        return self._in_blocks(features, layer=-2)

    def _in_blocks(self, features: NDArray[np.float32], layer: int) -> NDArray[np.float32]:
        values = np.empty((len(features), self.sizes[layer]), dtype=np.float32)
        workspace = _Workspace()
        for start in range(0, len(features), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            x = torch.from_numpy(np.ascontiguousarray(features[block])).to(self.weights[0].device)
            values[block] = self._layers(x, workspace)[layer].cpu().numpy()
        return values

    def describe(self) -> dict[str, Any]:
        """The sizes of its layers, and whether the score goes through elu."""
        return {
            "sizes": list(self.sizes),
            "elu_output": self.elu_output,
            "activation": self.activation,
        }

    def tensors(self) -> dict[str, Tensor]:
        """Weights and biases by layer."""
        weights = {f"weights.{i}": weight for i, weight in enumerate(self.weights)}
        return weights | {f"biases.{i}": bias for i, bias in enumerate(self.biases)}

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over weights and biases."""
        held = self.tensors()
        check_shapes(held, tensors)
        for name, tensor in held.items():
            tensor.copy_(tensors[name])

    def state(self) -> dict[str, Tensor]:
        """That of the optimiser, which holds the parameters."""
        assert self._optimizer is not None, "a ranker has a state after it was started"
        return self._optimizer.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        assert self._optimizer is not None, "a ranker goes on after it was started"
        self._optimizer.load_state(state)

    def optimizer_state(self) -> dict[str, Tensor]:
        """The sums of the optimiser."""
        return {} if self._optimizer is None else self._optimizer.sums()

    def load_optimizer_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on with these sums."""
        for name, held in self.optimizer_state().items():
            held.copy_(state[name])

    @property
    def left_out(self) -> int:
        """Steps whose gradient was not finite."""
        return 0 if self._optimizer is None else self._optimizer.left_out

    def layers(self) -> list[Layer]:
        """All of them, with what comes after each."""
        return [
            Layer(weight.cpu().numpy(), bias.cpu().numpy(), self._after(i))
            for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True))
        ]

    def _after(self, layer: int) -> str | None:
        """The activation after a layer; the last has none, or elu."""
        if layer < len(self.weights) - 1:
            return self.activation
        return "elu" if self.elu_output else None

    def plus(self, other: Ranker, weight: float) -> Ranker:
        """Both side by side, as one network: hidden layers are joined, and outputs are added.

        It is the sum exactly, as long as neither score goes through an elu of its own, and hidden
        units of both have the same activation.
        """
        if (
            not isinstance(other, Network)
            or len(self.sizes) != len(other.sizes)
            or self.sizes[0] != other.sizes[0]
        ):
            return super().plus(other, weight)
        if self.elu_output or other.elu_output:
            raise SettingsError("scores that go through an elu do not add up to those of a network")
        if self.sizes[2:] and self.activation != other.activation:
            raise SettingsError(
                f"networks with {self.activation} and {other.activation} do not add up to one"
            )
        hidden = zip(self.sizes[1:-1], other.sizes[1:-1], strict=True)
        sizes = (self.sizes[0], *(one + two for one, two in hidden), 1)
        joined = Network(sizes, activation=self.activation)
        last = len(self.weights) - 1
        for i in range(last + 1):
            one, two = (self.weights[i], self.biases[i]), (other.weights[i], other.biases[i])
            if i == last:
                two = (two[0] * weight, two[1] * weight)
            rows, columns = one[0].shape
            # The first layer reads the same features, and the last writes to the same score.
            weights, bias = joined.weights[i], joined.biases[i]
            weights.zero_()
            weights[:rows, :columns] += one[0]
            weights[-len(two[0]) :, -two[0].shape[1] :] += two[0]
            bias[:rows] += one[1]
            bias[-len(two[1]) :] += two[1]
        return joined

    def _to(self, device: torch.device) -> None:
        self.weights = [weight.to(device) for weight in self.weights]
        self.biases = [bias.to(device) for bias in self.biases]


@dataclass(frozen=True)
class DNN(RankerSettings):
    """A feed-forward network; `hidden` are the sizes of its hidden layers.

    Their `activation` is the paper's elu, or one that a search engine knows: Solr has relu,
    leaky-relu, tanh and sigmoid. `precision="bfloat16"` computes the matrix products of training
    in that precision, which is faster where the processor has it and slower where it does not.

    >>> import dualrank as dr
    >>> dr.DNN(hidden=(64, 32), activation="relu").hidden
    (64, 32)
    """

    kind = "dnn"
    makes = Network

    hidden: Annotated[tuple[int, ...], "Sizes of the DNN's hidden layers."] = (256, 128)
    elu_output: Annotated[bool, "The DNN as the paper prints it."] = False
    precision: Annotated[
        Literal["float32", "bfloat16"], "Of matrix products in training: float32 or bfloat16."
    ] = "float32"
    activation: Annotated[
        Name, "Of the DNN's hidden units: elu, relu, leaky-relu, tanh or sigmoid; Solr has no elu."
    ] = "elu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if any(size < 1 for size in self.hidden):
            raise SettingsError(f"hidden layers need at least one unit each, not {self.hidden}")
        if self.precision not in PRECISIONS:
            raise SettingsError(f"precision is float32 or bfloat16, not {self.precision!r}")
        if self.activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise SettingsError(f"the activation is one of {known}, not {self.activation!r}")

    def build(self, inputs: int, seed: int = 0) -> Network:
        """A network for this many features, initialised from the seed."""
        return Network(
            (inputs, *self.hidden, 1),
            elu_output=self.elu_output,
            activation=self.activation,
            seed=seed,
            dtype=PRECISIONS[self.precision],
        )


@dataclass(frozen=True)
class Linear(RankerSettings):
    """f(x) = w · x + b.

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> model = dr.fit(log, data.train, method="naive", ranker=dr.Linear(), steps=20)
    >>> model.kind
    'linear'
    """

    kind = "linear"
    makes = Network

    def build(self, inputs: int, seed: int = 0) -> Network:
        """A linear model for this many features."""
        return Network((inputs, 1), seed=seed)


def check_sizes(sizes: Sequence[int], inputs: int, room: int) -> None:
    """A ValueError unless these are layers from so many inputs to one score, of at most `room`
    bytes: they are asked for before anything is made as large as a file says.
    """
    if len(sizes) < 2 or sizes[0] != inputs or sizes[-1] != 1:
        raise ValueError(f"layers of sizes {str(sizes)[:60]} do not lead from {inputs} inputs to 1")
    if not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise ValueError("a layer has at least one unit")
    if 4 * sum(one * two + two for one, two in pairwise(sizes)) > room:
        raise ValueError(f"layers of sizes {str(sizes)[:60]} need more than the file has")


class _Workspace:
    """Buffers that live from step to step: fresh memory for every layer of every step would cost
    more in page faults than the element-wise work itself.
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, int], Tensor] = {}

    def take(self, name: str, layer: int, rows: int, columns: int, like: Tensor) -> Tensor:
        held = self._buffers.get((name, layer))
        fits = held is not None and len(held) >= rows and held.shape[1] == columns
        if held is None or not fits or (held.dtype, held.device) != (like.dtype, like.device):
            held = torch.empty(rows, columns, dtype=like.dtype, device=like.device)
            self._buffers[name, layer] = held
        return held[:rows]


def _outer(delta: Tensor, h: Tensor) -> Tensor:
    """δᵀh, computed with the wider side last, which is faster."""
    return delta.t() @ h if h.shape[1] >= delta.shape[1] else (h.t() @ delta).t()
