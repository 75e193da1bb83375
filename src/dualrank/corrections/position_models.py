"""The propensity model E inside dual learning: g(φ), one score per displayed position.

Whatever its form, a model of positions gives a small table, one row per context of a session (one
row in all where sessions are not told apart) and one column per position:

    P_E(o_i | c) ∝ e^{g_{c,i}}

Lists only look their scores up. The loss is therefore differentiated by hand down to the table,
and a model needs to say only how the table depends on its parameters, which is autograd's work by
default. All models start with an even table: every position is thought equally likely to be
examined, which is what the paper's zero start means.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dualrank.corrections.whole_steps import some_of_the_way
from dualrank.errors import SettingsError
from dualrank.propensity.propensity import Propensity

HIDDEN = 16
CONTEXT_SPREAD = 0.25
WEAKEST = 1e-3
"""Ways in which a network's table moves less than so much of the most are not gone."""


class PositionModel(nn.Module, ABC):
    """What every propensity model of dual learning offers."""

    @abstractmethod
    def forward(self) -> Tensor:
        """The table of propensity scores g, `[contexts, positions]`."""

    def gradients(self, slope: Tensor, drawn: int) -> Sequence[Tensor]:
        """∂l/∂φ for every parameter, from ∂l/∂g over `drawn` sessions."""
        return torch.autograd.grad(self(), list(self.parameters()), slope)

    def follow(self, way: Tensor) -> None:
        """Move the parameters so that all curves go this way, as nearly as they can."""
        parameters, table = list(self.parameters()), self()
        rows = [
            torch.cat([part.reshape(-1) for part in grad])
            for grad in (
                torch.autograd.grad(value, parameters, retain_graph=True) for value in table[0]
            )
        ]
        moves = torch.linalg.pinv(torch.stack(rows), rtol=WEAKEST) @ way
        with torch.no_grad():
            sizes = [parameter.numel() for parameter in parameters]
            for parameter, move in zip(parameters, moves.split(sizes), strict=True):
                parameter.add_(move.view_as(parameter))

    def follow_contexts(self, slope: Tensor, bend: Tensor, rate: float) -> None:
        """Move what contexts differ by some of the way to the least loss of each."""

    can_begin = False
    """Whether it can begin with a curve."""

    def believe(self, propensity: Propensity) -> None:
        """Begin with this curve, where the form allows it."""
        raise SettingsError(f"{type(self).__name__} cannot begin with a curve; variables can")

    @torch.no_grad()
    def examination(self) -> NDArray[np.float64]:
        """The learned curves, relative to the first position: e^{g_i − g_1}, one per context."""
        table = self().double().cpu()
        return torch.exp(table - table[:, :1]).numpy()

    def propensity(self) -> Propensity:
        """The learned curve."""
        return Propensity.of(self.examination()[0], method="dual learning")


class PositionVariables(PositionModel):
    """A separate variable φ_i for every position, the model that the paper reports."""

    can_begin = True

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.phi = nn.Parameter(torch.zeros(depth))

    def believe(self, propensity: Propensity) -> None:
        """φ_i = log P(o_i)."""
        _copy_curve(propensity, self.phi)

    def forward(self) -> Tensor:
        """g_i = φ_i."""
        return self.phi[None]

    def gradients(self, slope: Tensor, drawn: int) -> Sequence[Tensor]:
        """The parameters are the table."""
        return [slope[0]]

    @torch.no_grad()
    def follow(self, way: Tensor) -> None:
        """The parameters are the table."""
        self.phi.add_(way)


class PositionNetwork(PositionModel):
    """A network with one hidden layer on one-hot positions: g_i = v · elu(W e_i + b).

    W e_i is the column i of W, so no one-hot vector is ever made.
    """

    def __init__(self, depth: int, seed: int = 0, hidden: int = HIDDEN) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.positions = nn.Parameter(torch.randn(depth, hidden, generator=generator))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.out = nn.Parameter(torch.zeros(hidden))

    def forward(self) -> Tensor:
        """All positions at once."""
        hidden = nn.functional.elu(self.positions + self.bias)
        return (hidden @ self.out)[None] / math.sqrt(len(self.out))


class RecurrentPositions(PositionModel):
    """A recurrent network that goes down the list as the reader does: g_i depends on the way to i.

    h_i = tanh(U h_{i−1} + W e_i + b),   g_i = v · h_i
    """

    def __init__(self, depth: int, seed: int = 0, hidden: int = HIDDEN) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.positions = nn.Parameter(torch.randn(depth, hidden, generator=generator))
        before = torch.randn(hidden, hidden, generator=generator) / math.sqrt(hidden)
        self.before = nn.Parameter(0.5 * before)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.out = nn.Parameter(torch.zeros(hidden))

    def forward(self) -> Tensor:
        """One position after the other."""
        hidden, states = torch.zeros_like(self.bias), []
        for position in self.positions + self.bias:
            hidden = torch.tanh(self.before @ hidden + position)
            states.append(hidden)
        return (torch.stack(states) @ self.out)[None] / math.sqrt(len(self.out))


class ContextualPositions(PositionModel):
    """A curve for every context, such as a device or a layout, drawn towards the common one.

        g_{c,i} = φ_i + δ_{c,i},   δ ~ N(0, σ²)

    The prior stands against the clicks of the context's own sessions: a context with many of them
    gets the curve that they show, and a rare one borrows from the others what its own clicks cannot
    say. Per session of the whole log, n of them, it is the penalty |δ|²/(2σ²n). `spread` is σ: at
    0.25, two weights in three are thought to be within a factor of 1.3 of the common ones; an
    infinite one gives every context a curve of its own.

    The clicks of a context come in its share of the sessions only, so δ_c is held as u_c/√share_c,
    which moves it as fast as that context alone would move φ.
    """

    can_begin = True

    def __init__(
        self,
        depth: int,
        sessions: dict[str, int],
        column: str = "context",
        spread: float = CONTEXT_SPREAD,
    ) -> None:
        super().__init__()
        self.column, self.sessions, self.spread = column, sessions, spread
        counts = torch.tensor(list(sessions.values()), dtype=torch.float32).clamp(min=1)
        self.phi = nn.Parameter(torch.zeros(depth))
        # Flat, because weight decay is for matrices.
        self.delta = nn.Parameter(torch.zeros(len(sessions) * depth))
        self._stretch: Tensor
        stretch = torch.rsqrt(counts / counts.sum())[:, None]
        self.register_buffer("_stretch", stretch, persistent=False)
        self._strength = 1 / (spread**2 * float(counts.sum()))

    def believe(self, propensity: Propensity) -> None:
        """Every context begins with the common curve."""
        _copy_curve(propensity, self.phi)

    def forward(self) -> Tensor:
        """The common curve and what each context adds to it."""
        return self.phi + self._stretch * self.delta.view(len(self.sessions), -1)

    def gradients(self, slope: Tensor, drawn: int) -> Sequence[Tensor]:
        """Those of the clicks, and for δ also that of the prior."""
        prior = self._strength * drawn * self._stretch * self.delta.detach().view_as(slope)
        return [slope.sum(0), (self._stretch * (slope + prior)).view(-1)]

    @torch.no_grad()
    def follow(self, way: Tensor) -> None:
        """The common curve moves, and all others with it."""
        self.phi.add_(way)

    @torch.no_grad()
    def follow_contexts(self, slope: Tensor, bend: Tensor, rate: float) -> None:
        """δ of each context, against the prior: its slope there is δ/σ², and its bend 1/σ²."""
        strength, delta = self.spread**-2, self._stretch * self.delta.view_as(slope)
        prior = strength * torch.eye(slope.shape[1], device=slope.device)
        way = some_of_the_way(slope + strength * delta, bend + prior, rate)
        self.delta.add_((way / self._stretch).view(-1))

    def propensity(self) -> Propensity:
        """The mean of the curves over sessions, and the curve of every context (`by_context`)."""
        curves, counts = self.examination(), list(self.sessions.values())
        details = {
            "context": self.column,
            "contexts": {
                name: {"sessions": count, "examination": curve.tolist()}
                for (name, count), curve in zip(self.sessions.items(), curves, strict=True)
            },
        }
        mean = np.average(curves, axis=0, weights=counts)
        return Propensity(mean, method="dual learning", details=details)


def _copy_curve(propensity: Propensity, phi: Tensor) -> None:
    with torch.no_grad():
        phi.copy_(torch.from_numpy(np.log(propensity.examination[: len(phi)])))


POSITION_MODELS: dict[str, Callable[[int, int], PositionModel]] = {
    "variables": lambda depth, seed: PositionVariables(depth),
    "network": PositionNetwork,
    "recurrent": RecurrentPositions,
}
"""The forms for sessions that are not told apart, by name; `contextual` tells them apart."""
CONTEXTUAL = "contextual"
