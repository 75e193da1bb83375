"""How a ranker is trained: every knob of the loop, checked once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from dualrank.errors import SettingsError
from dualrank.evaluation.metric import Metric

_NUMBERS: dict[type, tuple[str, ...]] = {
    Integral: (
        "steps",
        "batch_size",
        "validate_every",
        "checkpoint_every",
        "threads",
        "seed",
    ),
    Real: ("learning_rate", "propensity_rate", "gradient_clip", "max_weight", "weight_decay"),
}


@dataclass(frozen=True)
class TrainingSettings:
    """The knobs of the training loop.

    The paper trains with batches of 256 sessions for 10,000 steps of plain SGD at a constant rate
    between 0.005 and 0.05. The defaults here were found on validation data to be steadier: rates
    that fall linearly to zero, because inverse propensity weights make single steps noisy, and a
    propensity model that moves faster than the ranker, because it has ten parameters and the
    ranker's correction depends on it.

    What is None is left open: it becomes what suits the ranker and the correction (`suited`).

    `normalisation` divides the loss by the number of sessions, as equation (11) of the paper, or by
    the batch's sum of weighted clicks, as its code did: they are different optimisers. `max_weight`
    clips inverse weights, since `exp(s_1 − s_i)` is unbounded. More than one of `threads` pays for
    large networks only, and can make small ones much slower.

    >>> import dualrank as dr
    >>> dr.TrainingSettings(steps=500, seed=3).steps
    500
    """

    steps: Annotated[int | None, "Training steps (3,000; trees 300)."] = None
    batch_size: Annotated[int, "Lists per step (trees take all)."] = 256
    optimizer: Annotated[Literal["sgd", "adagrad"], "sgd or adagrad."] = "sgd"
    learning_rate: Annotated[
        float | None, "The ranker's rate (0.2; likelihood 0.6; trees 0.05)."
    ] = None
    propensity_rate: Annotated[
        float, "The propensity model's rate (trees: 1 is 3% of a Newton step)."
    ] = 1.0
    schedule: Annotated[Literal["linear", "constant"], "Rates: linear or constant."] = "linear"
    normalisation: Annotated[
        Literal["sessions", "clicks"], "The loss is divided by: sessions or clicks."
    ] = "sessions"
    gradient_clip: Annotated[float, "Clips gradients."] = 5.0
    max_weight: Annotated[float, "Clips inverse weights."] = 1_000.0
    weight_decay: Annotated[float | None, "L2 regularisation (0; likelihood 0.001)."] = None
    metric: Annotated[str, "Keeps the best ranker, where validation is judged."] = "ndcg@10"
    validate_every: int | None = None
    checkpoint_every: int | None = None
    threads: Annotated[int, "Threads of a training step."] = 1
    device: Annotated[str, "auto (a GPU where there is one), cpu, cuda or cuda:n."] = "auto"
    seed: Annotated[int, "The seed of everything random."] = 0

    def __post_init__(self) -> None:
        for kind, names in _NUMBERS.items():
            for name in names:
                value = getattr(self, name)
                if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
                    whole = "a whole number" if kind is Integral else "a number"
                    raise SettingsError(f"{name} is {whole}, not {value!r}")
                if hasattr(value, "item"):
                    # A number of numpy, as from a grid, is none that a manifest can hold.
                    object.__setattr__(self, name, value.item())
        for name in ("steps", "batch_size", "validate_every", "checkpoint_every", "threads"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("learning_rate", "propensity_rate", "gradient_clip"):
            if getattr(self, name) is not None and not 0 < getattr(self, name) < math.inf:
                raise SettingsError(f"{name} must be a number above 0, not {getattr(self, name)}")
        Metric.parse(self.metric)
        if not self.max_weight >= 1:
            raise SettingsError(f"max_weight must be at least 1, not {self.max_weight}")
        if self.weight_decay is not None and not self.weight_decay >= 0:
            raise SettingsError(f"weight_decay must be 0 or more, not {self.weight_decay}")
        if self.seed < 0:
            raise SettingsError(f"seed must be 0 or more, not {self.seed}")
        for name, known in _choices().items():
            if getattr(self, name) not in known:
                raise SettingsError(
                    f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r}"
                )

    def suited(self, *suits: Mapping[str, float]) -> Suited:
        """With what was left open as it suits, the last of `suits` first; what was asked stays."""
        wanted: dict[str, Any] = {name: value for each in suits for name, value in each.items()}
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return Suited(
            **wanted | {name: value for name, value in given.items() if value is not None}
        )

    @property
    def rate(self) -> float:
        """The ranker's learning rate."""
        return Suited.learning_rate if self.learning_rate is None else self.learning_rate

    @property
    def decay(self) -> float:
        """The weight decay."""
        return Suited.weight_decay if self.weight_decay is None else self.weight_decay


@dataclass(frozen=True)
class Suited(TrainingSettings):
    """Settings of which nothing is left open; the defaults are those of networks."""

    steps: int = 3_000
    learning_rate: float = 0.2
    weight_decay: float = 0.0
    validate_every: int = 200
    checkpoint_every: int = 200


def settings_with(settings: TrainingSettings, options: Mapping[str, Any]) -> TrainingSettings:
    """The settings with others in the place of some; what is none is refused, with what there is.

    >>> settings_with(TrainingSettings(), {"stepz": 5})
    Traceback (most recent call last):
    dualrank.errors.SettingsError: there is no setting 'stepz' (did you mean steps?); \
there are steps, batch_size, optimizer, learning_rate, propensity_rate, schedule, normalisation, \
gradient_clip, max_weight, weight_decay, metric, validate_every, checkpoint_every, threads, \
device, seed
    """
    require_known(options, [f.name for f in fields(TrainingSettings)])
    return replace(settings, **options)


def require_known(options: Iterable[str], known: Sequence[str]) -> None:
    """Refuse an option that is none of those known, and say which one may be meant."""
    for name in options:
        if name not in known:
            close = get_close_matches(name, known, 1)
            meant = f" (did you mean {close[0]}?)" if close else ""
            raise SettingsError(
                f"there is no setting {name!r}{meant}; there are {', '.join(known)}"
            )


def _choices() -> dict[str, tuple[str, ...]]:
    """The settings that are one of a few words."""
    hints = get_type_hints(TrainingSettings)
    return {
        f.name: get_args(hints[f.name])
        for f in fields(TrainingSettings)
        if get_origin(hints[f.name]) is Literal
    }
