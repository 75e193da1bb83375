"""JSON that is written only if an evaluator of its format, reading it, agrees with the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.engines.contents import feature_names
from dualrank.engines.evaluators.descent import Values, columns_of
from dualrank.engines.parity import draw_sample, require_parity
from dualrank.engines.target import Export
from dualrank.storage import write_text

Evaluator = Callable[[Any, dict[str, Values], int], NDArray[np.float32]]


def write_compared(
    asked: Export,
    what: str,
    content: Any,
    evaluate: Evaluator,
    *,
    constant: float = 0.0,
    gap: float = 0.0,
) -> float:
    """Write the content, and return how far its scores and the model's are apart.

    `constant` is what the model adds to every score and the format cannot hold, which changes no
    ranking. `gap` is how far above a threshold a value must lie for the format to tell.
    """
    text = json.dumps(content, allow_nan=False) + "\n"
    sample = draw_sample(asked.model, asked.documents, seed=asked.seed, gap=gap)
    columns = columns_of(feature_names(asked.model), sample.features)
    with np.errstate(all="ignore"):  # what overflows differs, and is refused
        found = evaluate(json.loads(text), columns, len(sample))
    expected = asked.model.predict(sample.features).astype(np.float64) - constant
    apart = require_parity(asked.out, what, sample, found, expected)
    write_text(asked.out, text)
    return apart
