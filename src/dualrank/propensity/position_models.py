"""The propensity model E inside dual learning: g(φ), one score per displayed position."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class PositionModel(nn.Module, ABC):
    """What every propensity model of dual learning offers."""

    @abstractmethod
    def forward(self, mask: Tensor) -> Tensor:
        """The propensity scores g for lists of this shape, `[lists, positions]`."""

    @abstractmethod
    def examination(self) -> NDArray[np.float64]:
        """The learned curve, relative to the first position."""


class PositionVariables(PositionModel):
    """A separate variable φ_i for every position, the model that the paper reports.

    It starts at φ = 0: every position is thought equally likely to be examined.
    """

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.phi = nn.Parameter(torch.zeros(depth))

    def forward(self, mask: Tensor) -> Tensor:
        """The propensity scores g for lists of this shape, `[lists, positions]`."""
        return self.phi.expand(mask.shape)

    def examination(self) -> NDArray[np.float64]:
        """The learned curve, relative to the first position: e^{φ_i − φ_1}."""
        phi = self.phi.detach().double().cpu()
        return torch.exp(phi - phi[0]).numpy()
