"""What was read, what was left out and why, and who clicked most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dualrank.errors import DataError

Treatment = Literal["dropped", "ignored", "noted"]


@dataclass(frozen=True)
class Kind:
    """A thing that can be wrong with a log, and what is done about it.

    `dropped` leaves the session out, `ignored` leaves out the row or event alone; what is `noted`
    loses nothing. Only the first two count towards the limit on bad sessions.
    """

    says: str
    treatment: Treatment = "dropped"
    unit: str = "sessions"


KINDS: Mapping[str, Kind] = {
    "no_session": Kind("session_id missing", unit="rows"),
    "missing_value": Kind("value missing"),
    "bad_position": Kind("position not a whole number from 1 to 1024"),
    "zero_based": Kind("position 0"),
    "gap": Kind("gap in the positions"),
    "same_position": Kind("several documents at one position"),
    "same_document": Kind("one document at several positions"),
    "bad_click": Kind("clicked neither 0 nor 1"),
    "several_queries": Kind("several queries in a session"),
    "several_contexts": Kind("context changes within a session"),
    "several_clients": Kind("several clients in a session"),
    "no_time": Kind("no readable timestamp"),
    "no_features": Kind("document without features"),
    "not_displayed": Kind("click on a document that was not displayed", "ignored"),
    "no_query": Kind("click of a query that is not in the log", "ignored", "clicks"),
    "no_object": Kind("click without an object_id", "ignored", "clicks"),
    "other_position": Kind(
        "click at another position than in query_response_hit_ids", "noted", "clicks"
    ),
    "repeated_click": Kind("click repeated", "noted", "clicks"),
    "repeated_row": Kind("row repeated", "noted"),
    "nothing_shown": Kind("query that displayed nothing", "noted", "queries"),
    "not_in_log": Kind("features of a document that was never displayed", "noted", "documents"),
}


FILTERS: Mapping[str, str] = {
    "max_clicks": "too many clicks in a session",
    "max_client_share": "client with too many of all clicks",
}


@dataclass(frozen=True)
class Problem:
    """One kind of problem: how often it was found (in sessions, mostly), with an example."""

    kind: str
    count: int
    example: str

    @property
    def says(self) -> str:
        """The kind in words."""
        return KINDS[self.kind].says

    @property
    def treatment(self) -> Treatment:
        """What was done about it."""
        return KINDS[self.kind].treatment

    @property
    def times(self) -> str:
        """How often it was found, in words."""
        return _times(self.count, KINDS[self.kind].unit)


@dataclass(frozen=True)
class Client:
    """One of the clients that clicked most."""

    name: str
    sessions: int
    clicks: int
    share_of_sessions: float
    share_of_clicks: float
    left_out: bool = False


@dataclass(frozen=True)
class ReadingReport:
    """What was read from a log, and what became of it.

    `rows` and `sessions` are as found, `kept` are the sessions that the click log holds. A session
    may have several problems, and is then counted in each. `filtered` counts sessions without a
    problem that a traffic filter left out, by the filter's name.
    """

    source: str
    rows: int
    sessions: int
    kept: int
    clicks: int
    problems: tuple[Problem, ...] = ()
    filtered: Mapping[str, int] = field(default_factory=dict)
    clients: tuple[Client, ...] = ()
    bad: int = 0
    """Sessions with a problem that loses something; what the limit is about."""

    @property
    def bad_share(self) -> float:
        """The share of sessions with a problem that loses something."""
        return self.bad / self.sessions if self.sessions else 0.0

    def check(self, max_bad_share: float) -> None:
        """Refuse a log with too many bad sessions, naming every kind of problem at once."""
        if self.bad_share <= max_bad_share:
            return
        lossy = [p for p in self.problems if p.treatment != "noted"]
        found = ", ".join(f"{p.says} ({p.times}: {p.example})" for p in lossy)
        allowed = f"{max_bad_share:.3g} is allowed" if max_bad_share else "none is allowed"
        raise BadLogError(
            f"{self.source}: {self.bad} of {self.sessions} sessions are bad, a share of "
            f"{self.bad_share:.3g} where {allowed}: {found}; mend the log, or raise max_bad_share "
            "to leave them out",
            self,
        )

    def table(self) -> list[tuple[str, str, str, str]]:
        """What was found: in words, how often, what became of it, and an example."""
        found = [(p.says, p.times, str(p.treatment), p.example) for p in self.problems]
        filtered = [
            (FILTERS[name], _times(count, "sessions"), "dropped", f"the filter {name}")
            for name, count in self.filtered.items()
        ]
        return [*found, *filtered]

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ReadingReport:
        """The report that `to_dict` wrote."""
        values = dict(content)
        values["problems"] = tuple(Problem(**problem) for problem in values["problems"])
        values["clients"] = tuple(Client(**client) for client in values["clients"])
        return cls(**values)


class BadLogError(DataError):
    """Too much of a log cannot be used; `reading` has the whole account."""

    def __init__(self, sentence: str, reading: ReadingReport) -> None:
        super().__init__(sentence)
        self.reading = reading


def _times(count: int, unit: str) -> str:
    """A number of things, whose name is given for several.

    >>> _times(1, "queries"), _times(1_200, "sessions")
    ('1 query', '1,200 sessions')
    """
    singular = unit.removesuffix("ies") + "y" if unit.endswith("ies") else unit.removesuffix("s")
    return f"{count:,} {singular if count == 1 else unit}"
