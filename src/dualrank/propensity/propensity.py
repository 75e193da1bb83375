"""The noun for how likely each position is examined."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.errors import DataError
from dualrank.evaluation.propensity_error import require_examination
from dualrank.propensity.curve_words import half_widths, short
from dualrank.sentences import counted, listed, reason_of, start_of
from dualrank.showing.axes import axes_for
from dualrank.showing.card import card, grid, said
from dualrank.showing.visible import one_line
from dualrank.storage import parse_json, read_json, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = 1e-300
"""The least relative examination that has an inverse."""
SHOWN = 10
"""Positions that a card or a line has room for."""


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
        with np.errstate(over="ignore", under="ignore"):
            relative = values / values[0]
        beyond = np.flatnonzero(~(np.isfinite(relative) & (relative >= LEAST)))
        if len(beyond):
            raise DataError(
                f"examination of position {beyond[0] + 1} is {relative[beyond[0]]:g} times that of "
                "the first position, which no weight can make up for"
            )
        return cls(relative, method, sessions)

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

    def __repr__(self) -> str:
        values = ", ".join(f"{value:.3g}" for value in self.examination[:SHOWN])
        more = ", …" if self.depth > SHOWN else ""
        return f"Propensity({one_line(self.method)}, {self.depth} positions: {values}{more})"

    def _repr_html_(self) -> str:
        """A card for notebooks: examination, intervals and weights by position."""
        shown = range(min(self.depth, SHOWN))
        rows = [("examination", *(short(self.examination[k]) for k in shown))]
        if self.high is not None:
            rows.append(("95% interval", *half_widths(self)[: len(shown)]))
        rows.append(("weight of a click", *(f"{self.weights[k]:.3g}" for k in shown)))
        if self.support is not None:
            rows.append(("observations", *(f"{self.support[k]:,}" for k in shown)))
        notes = []
        if self.depth > SHOWN:
            notes.append(f"Positions {SHOWN + 1} to {self.depth} are in .examination.")
        if "ends" in self.details:
            notes.append(f"Ends at position {self.depth}: {self.details['ends']}.")
        if self.context is not None and self.details.get("contexts"):
            names = listed(map(str, self.details["contexts"]))
            notes.append(f"By {start_of(self.context)} (.by_context): {names}.")
        sessions = counted(self.sessions, "sessions") if self.sessions else ""
        columns = ("position", *(str(k + 1) for k in shown))
        about = (start_of(self.method), sessions)
        return card("Propensity", about, grid(columns, rows), said(*notes, aside=True))

    def plot(self, ax: Axes | None = None, *, label: str | None = None, **style: Any) -> Axes:
        """Draw examination by position, with its intervals where it has them.

        Several curves come on one picture by giving the axes on: `other.plot(ax=curve.plot())`.
        `label` is what the legend says, by default the method; `style` goes to matplotlib, such as
        `color="black"`. Needs matplotlib.

        >>> from matplotlib.figure import Figure
        >>> curve = Propensity.of([0.68, 0.61, 0.48], method="eye tracking")
        >>> ax = curve.plot(Figure().subplots())
        >>> ax = Propensity.of([1, 0.9, 0.8]).plot(ax, label="a guess")
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['eye tracking', 'a guess']
        """
        from dualrank.propensity.curve_drawing import draw_examination

        ax = axes_for(ax)
        draw_examination(ax, self, self.method if label is None else label, **style)
        return ax

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
        content = read_json(Path(path))
        try:
            return cls._of_content(content)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    @classmethod
    def from_json(cls, text: str | bytes) -> Propensity:
        """What `to_json` gave, or any JSON with a list `examination`."""
        try:
            return cls._of_content(parse_json(text))
        except ValueError as error:
            raise DataError(f"not JSON: {error}") from error

    @classmethod
    def _of_content(cls, content: Any) -> Propensity:
        if not isinstance(content, dict) or "examination" not in content:
            raise DataError("a propensity file has a list named examination")
        rest = dict(content)
        try:
            examination = rest.pop("examination")
            known = cls.of(examination, str(rest.pop("method", "given")))
            low = _bound(rest.pop("low", None), examination, 0.0)
            high = _bound(rest.pop("high", None), examination, np.inf)
            sessions = _count(rest.pop("sessions", None) or 0, "sessions")
            support = rest.pop("support", None)
            counted = None if support is None else _support(support, known.depth)
            _check_intervals(low, high)
            found = cls(known.examination, known.method, sessions, low, high, rest, counted)
            _check_contexts(rest.get("contexts", {}))
            _ = found.by_context
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise DataError(f"not a propensity file: {reason_of(error)}") from error
        return found


def _count(value: Any, what: str) -> int:
    """A whole number from 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise DataError(f"{what} are a whole number, not {value!r:.40}")
    if not 0 <= value <= 2**53:
        raise DataError(f"{what} are 0 or more, and can be counted; not {value:g}")
    return int(value)


def _support(values: Any, depth: int) -> NDArray[np.int64]:
    counts = [_count(value, "the observations of a position (support)") for value in values]
    if len(counts) != depth:
        raise DataError(f"support is given for {len(counts)} positions, examination for {depth}")
    return np.asarray(counts, dtype=np.int64)


def _check_intervals(low: NDArray[np.float64] | None, high: NDArray[np.float64] | None) -> None:
    for name, bound in (("low", low), ("high", high)):
        if bound is not None and not (bound >= 0).all():
            position = int(np.argmin(bound >= 0)) + 1
            raise DataError(f"{name} of position {position} is {bound[position - 1]:g}, below 0")
    if low is not None and high is not None and not (low <= high).all():
        raise DataError(f"low of position {int(np.argmin(low <= high)) + 1} is above high")


def _check_contexts(contexts: Any) -> None:
    if not isinstance(contexts, Mapping):
        raise TypeError("contexts are curves by name")
    for name, curve in contexts.items():
        if not isinstance(curve, Mapping) or "examination" not in curve:
            raise TypeError(f"the curve of {name!r:.40} has no list named examination")
        _count(curve.get("sessions", 0), f"the sessions of {name!r:.40}")


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
