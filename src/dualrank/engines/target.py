"""What an export target is: a function that writes what it is asked for, and says what it wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.engines.grades import GRADES
from dualrank.learning.model import Model


@dataclass(frozen=True, eq=False)
class Export:
    """A model and where it should go, with the documents and the log that some targets need.

    `grades` is the number of grades that labels are cut into, 0 for labels as they are.
    """

    model: Model
    out: Path
    documents: Dataset | None = None
    log: ClickLog | None = None
    max_weight: float = 1_000.0
    grades: int = GRADES
    seed: int = 0


@dataclass(frozen=True)
class Written:
    """What was written, as a sentence and as plain values."""

    sentence: str
    facts: dict[str, Any] = field(default_factory=dict)


Target = Callable[[Export], Written]
