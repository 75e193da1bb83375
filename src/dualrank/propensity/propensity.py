"""The noun for how likely each position is examined."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.errors import DataError
from dualrank.evaluation.propensity_error import require_examination
from dualrank.storage import write_text


@dataclass(frozen=True, eq=False)
class Propensity:
    """Relative examination per position (first = 1), with intervals and the method that made it.

    `low` and `high` bound the 95% interval where the method has one. `sessions` is how many
    sessions stand behind the estimate, 0 where it was given and not estimated, and `support` how
    many observations stand behind each position, where the method knows.

    >>> Propensity.of([0.68, 0.34], method="eye tracking").weights
    array([1., 2.])
    """

    examination: NDArray[np.float64]
    method: str
    sessions: int = 0
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    support: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, examination: ArrayLike, method: str = "given", sessions: int = 0) -> Propensity:
        """A propensity from examination probabilities on any common scale."""
        values = require_examination(examination)
        return cls(values / values[0], method, sessions)

    @property
    def depth(self) -> int:
        """How many positions are known."""
        return len(self.examination)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The inverse propensity weights P(o_1)/P(o_i)."""
        return 1.0 / self.examination

    @property
    def context(self) -> str | None:
        """The column of the log whose values have curves of their own, if there is one."""
        name = self.details.get("context")
        return None if name is None else str(name)

    @property
    def by_context(self) -> dict[str, Propensity]:
        """The curve of every value of `context`."""
        return {
            name: Propensity.of(curve["examination"], self.method, int(curve.get("sessions", 0)))
            for name, curve in self.details.get("contexts", {}).items()
        }

    def to_json(self) -> str:
        """The Propensity JSON of the file contract."""

        def numbers(values: NDArray[np.float64] | None) -> list[float | None] | None:
            # JSON has no infinity: a bound that is not known is null.
            return (
                None if values is None else [v if np.isfinite(v) else None for v in values.tolist()]
            )

        content = {
            "method": self.method,
            "sessions": self.sessions,
            "examination": numbers(self.examination),
            "low": numbers(self.low),
            "high": numbers(self.high),
            **({} if self.support is None else {"support": self.support.tolist()}),
            **self.details,
        }
        return json.dumps(content, indent=1) + "\n"

    def write(self, path: Path) -> None:
        """Write as JSON."""
        write_text(path, self.to_json())

    @classmethod
    def read(cls, path: str | Path) -> Propensity:
        """Read what `write` wrote, or any JSON with a list `examination`."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise DataError(f"{path}: not JSON: {error}") from error
        if not isinstance(content, dict) or "examination" not in content:
            raise DataError(f"{path}: a propensity file has a list named examination")
        try:
            examination = content.pop("examination")
            known = cls.of(examination, str(content.pop("method", "given")))
            low = _bound(content.pop("low", None), examination, 0.0)
            high = _bound(content.pop("high", None), examination, np.inf)
            sessions = int(content.pop("sessions", None) or 0)
            support = content.pop("support", None)
            counted = None if support is None else np.asarray(support, dtype=np.int64)
            found = cls(known.examination, known.method, sessions, low, high, content, counted)
            _ = found.by_context
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}: not a propensity file: {error}") from error
        return found


def _bound(values: Any, examination: Any, unknown: float) -> NDArray[np.float64] | None:
    """One side of the intervals, on the scale on which the first position is 1."""
    if values is None:
        return None
    bound = np.asarray(values, dtype=np.float64)
    bound = np.where(np.isnan(bound), unknown, bound)
    if bound.shape != np.shape(examination):
        raise DataError(
            f"an interval is given for {bound.size} positions, examination for {len(examination)}"
        )
    return bound / float(examination[0])
