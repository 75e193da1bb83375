"""How a ranker is trained: every knob of the loop, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dualrank.errors import SettingsError
from dualrank.evaluation.metric import Metric


@dataclass(frozen=True)
class TrainingSettings:
    """The knobs of the training loop.

    The paper trains with batches of 256 sessions for 10,000 steps of plain SGD at a constant rate
    between 0.005 and 0.05. The defaults here were found on validation data to be steadier: rates
    that fall linearly to zero, because inverse propensity weights make single steps noisy, and a
    propensity model that moves faster than the ranker, because it has ten parameters and the
    ranker's correction depends on it.
    """

    steps: int = 3_000
    batch_size: int = 256
    optimizer: Literal["sgd", "adagrad"] = "sgd"
    learning_rate: float = 0.2
    propensity_rate: float = 1.0
    schedule: Literal["linear", "constant"] = "linear"
    normalisation: Literal["sessions", "clicks"] = "sessions"
    """Divide the loss by the number of sessions, as equation (11) of the paper, or by the batch's
    sum of weighted clicks, as its code did. They are different optimisers."""
    gradient_clip: float = 5.0
    max_weight: float = 1_000.0
    """Inverse weights are clipped here. `exp(s_1 − s_i)` is unbounded."""
    weight_decay: float = 0.0
    metric: str = "ndcg@10"
    validate_every: int = 200
    checkpoint_every: int = 200
    threads: int = 1
    """More than one pays for large networks only, and can make small ones much slower."""
    device: str = "auto"
    """Where steps are computed: `cpu`, `cuda`, `cuda:n`, or `auto`, a GPU where there is one."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "validate_every", "checkpoint_every", "threads"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("learning_rate", "propensity_rate", "gradient_clip"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingsError(f"{name} must be a number above 0, not {getattr(self, name)}")
        Metric.parse(self.metric)
        if not self.max_weight >= 1:
            raise SettingsError(f"max_weight must be at least 1, not {self.max_weight}")
        if not self.weight_decay >= 0:
            raise SettingsError(f"weight_decay must be 0 or more, not {self.weight_decay}")
        if self.seed < 0:
            raise SettingsError(f"seed must be 0 or more, not {self.seed}")
        choices = {
            "optimizer": ("sgd", "adagrad"),
            "schedule": ("linear", "constant"),
            "normalisation": ("sessions", "clicks"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise SettingsError(
                    f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r}"
                )
