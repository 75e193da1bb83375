"""What of a model an engine is told: the names of its features, its scaling."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.errors import SettingsError
from dualrank.learning.model import Model
from dualrank.rankers.ranker import Layer


def feature_names(model: Model) -> list[str]:
    """Those of all inputs: the columns of the training features, or f1, f2 … as in LETOR text."""
    if model.feature_names is not None:
        return list(model.feature_names)
    return [f"f{number}" for number in range(1, model.scaler.input_count + 1)]


def kept_names(model: Model) -> list[str]:
    """Those of the inputs that vary in training; an engine need not compute the others."""
    names = feature_names(model)
    return [names[column] for column in model.scaler.kept]


def names_without(model: Model, forbidden: re.Pattern[str]) -> list[str]:
    """Those of all inputs, with _ for what a library does not take in names; none comes twice.

    What was a_b before keeps its name; what only becomes a_b is numbered if that is taken: a_b_2.
    """
    names = feature_names(model)
    taken = {name for name in names if not forbidden.search(name)}
    found = []
    for name in names:
        made = plain = forbidden.sub("_", name)
        number = 1
        while made != name and made in taken:
            number += 1
            made = f"{plain}_{number}"
        taken.add(made)
        found.append(made)
    return found


def is_linear(layers: list[Layer] | None) -> bool:
    """Whether the scores are w · x + b."""
    return layers is not None and len(layers) == 1 and layers[0].activation is None


@dataclass(frozen=True, eq=False)
class FloatScaling:
    """(x − shift) / spread with both in float32, as engines compute it, and what that loses.

    It is what engines call standard normalisation; with a minimum and a range in the place of mean
    and deviation it scales from 0 to 1 as well. A model's y = (x − m) · s in double precision is
    `ratio` · (x − shift) / spread + `rest`: the first goes into the weights that y meets, the
    second into a bias.
    """

    shift: NDArray[np.float32]
    spread: NDArray[np.float32]
    ratio: NDArray[np.float64]
    rest: NDArray[np.float64]

    @classmethod
    def of(cls, model: Model, target: str) -> FloatScaling:
        """The scaling of a model; logarithms are refused."""
        scaler = model.scaler
        if scaler.kind == "log":
            raise SettingsError(
                f"{target} has no logarithmic scaling: train with scaling='standard', on features "
                "whose logarithm was taken before if they need it"
            )
        shift = scaler.shift.astype(np.float32)
        spread = (1 / scaler.scale).astype(np.float32)
        return cls(
            shift,
            spread,
            spread.astype(np.float64) * scaler.scale,
            (shift.astype(np.float64) - scaler.shift) * scaler.scale,
        )
