"""Users who do not keep to the position-based assumption, to test learning under them.

All perceive relevance as the paper's user does,

    attraction = ε + (1 − ε) (2^y − 1) / (2^y_max − 1)

and differ in how they go down the page. The defaults are habits that are plausible for ten
results, not measurements; give your own in a file (`read_user`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.browsing import ByLastClick, Chain, Independent
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.user import User, perceived_relevance, require_probability, up_to
from dualrank.errors import DataError, SettingsError
from dualrank.sentences import reason_of, shortened
from dualrank.storage import read_json

DEPTH = 10
Grades = NDArray[np.floating]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class _AttractedUser:
    """Clicks what is examined and attractive; all habits are probabilities."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        for habit in fields(self):
            value = getattr(self, habit.name)
            values = value if isinstance(habit.default, tuple) else (value,)
            require_probability(habit.name, *values)

    def _attraction(self, grades: Grades, mask: Mask, max_grade: float) -> NDArray[np.float64]:
        return np.where(mask, perceived_relevance(grades, max_grade, self.epsilon), 0.0)


@dataclass(frozen=True)
class CascadeUser(_AttractedUser):
    """Reads from the top, clicks the first document that looks relevant, and leaves."""

    def browse(self, grades: Grades, mask: Mask, max_grade: float) -> Chain:
        """This user in front of lists of grades."""
        attraction = self._attraction(grades, mask, max_grade)
        return Chain(attraction, np.zeros_like(attraction), after_skip=1.0)


@dataclass(frozen=True)
class DependentClickUser(_AttractedUser):
    """Reads from the top, and after a click at rank k goes on with probability λ_k."""

    continuation: tuple[float, ...] = (0.8, 0.75, 0.7, 0.66, 0.62, 0.59, 0.56, 0.54, 0.52, 0.5)

    def browse(self, grades: Grades, mask: Mask, max_grade: float) -> Chain:
        """This user in front of lists of grades."""
        attraction = self._attraction(grades, mask, max_grade)
        continuation = np.asarray(up_to(grades.shape[1], self.continuation, "continuation"))
        after_click = np.broadcast_to(continuation, attraction.shape)
        return Chain(attraction, after_click, after_skip=1.0)


@dataclass(frozen=True)
class ClickChainUser(_AttractedUser):
    """Reads from the top; whether to go on depends on the click and on what it showed.

    After a skip with probability τ₁, after a click with τ₂ (1 − r) + τ₃ r, where r is the
    relevance of the clicked document: who has found something relevant leaves sooner.
    """

    after_skip: float = 0.95
    after_irrelevant_click: float = 0.8
    after_relevant_click: float = 0.3

    def browse(self, grades: Grades, mask: Mask, max_grade: float) -> Chain:
        """This user in front of lists of grades."""
        r = self._attraction(grades, mask, max_grade)
        after_click = self.after_irrelevant_click * (1 - r) + self.after_relevant_click * r
        return Chain(r, after_click, self.after_skip)


@dataclass(frozen=True)
class DynamicBayesianUser(_AttractedUser):
    """Reads from the top, leaves when satisfied by a click, or else tired with 1 − γ.

    A clicked document satisfies with `satisfaction` (2^y − 1)/(2^y_max − 1): grade 0 never does.
    """

    satisfaction: float = 0.9
    continuation: float = 0.9

    def browse(self, grades: Grades, mask: Mask, max_grade: float) -> Chain:
        """This user in front of lists of grades."""
        attraction = self._attraction(grades, mask, max_grade)
        satisfied = self.satisfaction * perceived_relevance(grades, max_grade, epsilon=0.0)
        return Chain(attraction, self.continuation * (1 - satisfied), self.continuation)


@dataclass(frozen=True)
class SimplifiedBayesianUser(DynamicBayesianUser):
    """The same, but never tired: reads on until satisfied."""

    continuation: float = field(default=1.0, init=False)


@dataclass(frozen=True)
class BrowsingUser(_AttractedUser):
    """Examines rank k with γ_(k,d), where d is the distance to the last click above.

    Without a click above, d = k. `examination[k − 1][d − 1]` is γ_(k,d).
    """

    examination: tuple[tuple[float, ...], ...] = tuple(
        tuple(round(d**-0.6, 3) for d in range(1, k + 1)) for k in range(1, DEPTH + 1)
    )

    def __post_init__(self) -> None:
        require_probability("epsilon", self.epsilon)
        for rank, row in enumerate(self.examination, start=1):
            if len(row) != rank:
                raise SettingsError(
                    f"examination has {len(row)} distances at rank {rank}; there are {rank}"
                )
            require_probability("examination", *row)

    def browse(self, grades: Grades, mask: Mask, max_grade: float) -> ByLastClick:
        """This user in front of lists of grades."""
        depth = grades.shape[1]
        by_last_click = np.zeros((depth, depth + 1))
        for rank, row in enumerate(up_to(depth, self.examination, "examination")):
            by_last_click[rank, : rank + 1] = row[::-1]
        return ByLastClick(self._attraction(grades, mask, max_grade), by_last_click)


@dataclass(frozen=True)
class TrustingUser:
    """Examines by position, and believes that what stands on top must be relevant.

        P(c_k = 1) = θ_k (ε⁺_k γ + ε⁻_k (1 − γ)),   θ_k = ρ_k^η,   γ = (2^y − 1)/(2^y_max − 1)

    ε⁺ is how likely a relevant document is clicked when examined, ε⁻ an irrelevant one
    (Agarwal et al. 2019). The default has ε⁻_k = 0.65/k and ε⁺_k = 1 − (k + 1)/100.
    """

    eta: float = 1.0
    relevant: tuple[float, ...] = tuple(round(1 - (k + 1) / 100, 3) for k in range(1, DEPTH + 1))
    irrelevant: tuple[float, ...] = tuple(round(0.65 / k, 3) for k in range(1, DEPTH + 1))

    def __post_init__(self) -> None:
        PositionBasedUser(eta=self.eta)
        require_probability("relevant", *self.relevant)
        require_probability("irrelevant", *self.irrelevant)

    def browse(self, grades: Grades, mask: Mask, max_grade: float) -> Independent:
        """This user in front of lists of grades."""
        depth = grades.shape[1]
        relevant = np.asarray(up_to(depth, self.relevant, "relevant"))
        irrelevant = np.asarray(up_to(depth, self.irrelevant, "irrelevant"))
        gamma = perceived_relevance(grades, max_grade, epsilon=0.0)
        clicked = irrelevant + (relevant - irrelevant) * gamma
        examination = PositionBasedUser(eta=self.eta).examination(depth)
        return Independent(np.where(mask, examination * clicked, 0.0))


USERS: dict[str, type[Any]] = {
    "pbm": PositionBasedUser,
    "pbm-trust": TrustingUser,
    "cascade": CascadeUser,
    "dcm": DependentClickUser,
    "ccm": ClickChainUser,
    "ubm": BrowsingUser,
    "sdbn": SimplifiedBayesianUser,
    "dbn": DynamicBayesianUser,
}


def make_user(name: str, **habits: Any) -> User:
    """A user by name, with these habits in the place of the default ones.

    >>> make_user("dbn", continuation=0.5)
    DynamicBayesianUser(epsilon=0.1, satisfaction=0.9, continuation=0.5)
    """
    if name not in USERS:
        raise SettingsError(f"unknown user {shortened(name)}; known are {', '.join(USERS)}")
    known = [f.name for f in fields(USERS[name]) if f.init]
    for habit in habits:
        if habit not in known:
            raise SettingsError(f"user {name} has no {shortened(habit)}; it has {', '.join(known)}")
    try:
        user: User = USERS[name](**{habit: _frozen(value) for habit, value in habits.items()})
    except TypeError as error:
        raise SettingsError(
            f"user {name}: a habit is of the wrong kind ({reason_of(error)})"
        ) from error
    return user


def read_user(path: str | Path) -> User:
    """A user from JSON: {"model": "dbn", "continuation": 0.8}; what it leaves out is default."""
    habits = read_json(Path(path))
    if not isinstance(habits, dict) or not isinstance(habits.get("model"), str):
        raise DataError(f'{path}: a user file names its model, as in {{"model": "dbn"}}')
    try:
        return make_user(habits.pop("model"), **habits)
    except SettingsError as error:
        raise DataError(f"{path}: {error}") from error


def find_user(name: str, **habits: Any) -> User:
    """A user by name, or by the name of a file, which has its own habits."""
    if not name.endswith(".json"):
        return make_user(name, **habits)
    for habit, value in habits.items():
        raise SettingsError(f"{habit}={value} belongs into {name}")
    return read_user(name)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(inner) for inner in value) if isinstance(value, list) else value
