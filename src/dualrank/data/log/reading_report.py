"""What was read, what was left out and why, and who clicked most."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeVar

from dualrank.errors import DataError
from dualrank.sentences import counted, shortened, start_of

Treatment = Literal["dropped", "ignored", "noted"]
Part = TypeVar("Part", "Problem", "Client", "ReadingReport")


@dataclass(frozen=True)
class Kind:
    """A thing that can be wrong with a log, and what is done about it.

    `dropped` leaves the session out, `ignored` leaves out the row or event alone; what is `noted`
    loses nothing. Of the first two, three units count towards the limit on what is bad, each by
    itself: sessions, rows that belong to no session, clicks that belong to no displayed list.
    """

    says: str
    treatment: Treatment = "dropped"
    unit: str = "sessions"


KINDS: Mapping[str, Kind] = {
    "no_session": Kind("session_id missing", unit="rows"),
    "missing_value": Kind("value missing"),
    "bad_position": Kind("position not a whole number in range"),
    "zero_based": Kind("position 0"),
    "gap": Kind("gap in the positions"),
    "partial_list": Kind("gap in the positions, taken as not shown or not logged", "noted"),
    "same_position": Kind("several documents at one position"),
    "same_document": Kind("one document at several positions"),
    "bad_click": Kind("clicked neither 0 nor 1"),
    "several_queries": Kind("several queries in a session"),
    "several_contexts": Kind("context changes within a session"),
    "several_clients": Kind("several clients in a session"),
    "no_time": Kind("no readable timestamp"),
    "no_times": Kind("no readable timestamp in the whole log, which has no periods", "noted"),
    "no_features": Kind("document without features"),
    "not_displayed": Kind("click on a document that was not displayed", "ignored"),
    "no_query": Kind("click of a query that is not in the log", "ignored", "clicks"),
    "no_object": Kind("click without an object_id", "ignored", "clicks"),
    "which_list": Kind(
        "click that may belong to several lists of its query_id", "ignored", "clicks"
    ),
    "unknown_query": Kind("impressions of a query that is not in the log", "ignored", "queries"),
    "nameless_impression": Kind("impression without an object_id", "ignored", "impressions"),
    "stray_event": Kind("event of no document that was displayed", "ignored", "events"),
    "other_position": Kind("click at another position than its document's", "noted", "clicks"),
    "unlisted_impression": Kind(
        "impression of a document that is not in query_response_hit_ids", "noted", "impressions"
    ),
    "from_impressions": Kind(
        "list taken from impressions, for want of query_response_hit_ids", "noted", "queries"
    ),
    "repeated_click": Kind("click repeated", "noted", "clicks"),
    "repeated_row": Kind("row repeated", "noted"),
    "several_lists": Kind(
        "query_id with lists of several queries, a session each", "noted", "queries"
    ),
    "no_action": Kind("event, none of them an action that counts as a click", "noted", "events"),
    "nothing_shown": Kind("query without hits and without impressions", "noted", "queries"),
    "not_in_log": Kind("features of a document that was never displayed", "noted", "documents"),
}


FILTERS: Mapping[str, str] = {
    "max_clicks": "too many clicks in a session",
    "max_client_share": "client with too many of all clicks",
}


MOST_LEFT_OUT = 0.5
"""Where more of a log has gaps, they are how it is, and no fault of some sessions."""
LONGEST_EXAMPLE = 300
"""Characters; accounts that were written before values were shortened repeat them whole."""
ERRORS, NOTABLE = 3.0, 0.1
"""Click rates differ if they do by so many standard errors, and by so much of the larger one."""


@dataclass(frozen=True)
class Problem:
    """One kind of problem: how often it was found (in sessions, mostly), with an example.

    Of sessions, `clicked` is how many of them have a click, where that was counted.
    """

    kind: str
    count: int
    example: str
    clicked: int | None = None

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
        return counted(self.count, KINDS[self.kind].unit)


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
    """Sessions with a problem that loses something."""
    clicked: int | None = None
    """Sessions with a click, as found; None in accounts that were written before it was counted."""
    bad_clicked: int = 0
    """Those of them that are `bad`."""

    @property
    def lost(self) -> dict[str, tuple[int, int]]:
        """Of sessions, rows and clicks, how many are bad, and how many there are.

        A row without a session and a click without a list are no sessions: each is a share of its
        own kind, which is what the limit is about.
        """
        bad = {"sessions": self.bad, "rows": 0, "clicks": 0}
        for problem in self.problems:
            unit = KINDS[problem.kind].unit
            if problem.treatment != "noted" and unit in ("rows", "clicks"):
                bad[unit] += problem.count
        there = {"sessions": self.sessions, "rows": self.rows, "clicks": self.clicks}
        return {unit: (min(count, there[unit]), there[unit]) for unit, count in bad.items()}

    @property
    def clicks_alone(self) -> bool:
        """Whether every row is a click, so that nothing tells what else was displayed."""
        return 0 < self.rows == self.clicks

    @property
    def bad_shares(self) -> dict[str, float]:
        """The share of sessions, rows and clicks that are bad."""
        return {unit: bad / total if bad else 0.0 for unit, (bad, total) in self.lost.items()}

    def check(
        self,
        max_bad_share: float,
        *,
        before: Mapping[str, float] | None = None,
        name: str | None = None,
    ) -> None:
        """Refuse a log of which too much is bad, naming every kind of problem at once.

        The shares `before` were allowed when the log was reduced; `name` is what it is called now.
        """
        shares = self.bad_shares
        worse = [
            unit
            for unit in shares
            if shares[unit] > max(max_bad_share, (before or {}).get(unit, 0))
        ]
        if not worse:
            return
        bad = " and ".join(
            f"{self.lost[unit][0]} of {self.lost[unit][1]} {unit} are bad, a share of "
            f"{shares[unit]:.3g}"
            for unit in worse
        )
        lossy = [p for p in self.problems if p.treatment != "noted"]
        found = ", ".join(
            f"{p.says} ({p.times}: {start_of(p.example, LONGEST_EXAMPLE)})" for p in lossy
        )
        cure = self._cure(reduced=bool(before))
        allowed = f"{max_bad_share:.3g} is allowed" if max_bad_share else "none is allowed"
        raise BadLogError(f"{name or self.source}: {bad} where {allowed}: {found}; {cure}", self)

    def _cure(self, *, reduced: bool) -> str:
        """What to mend: of a log that was reduced before, the features alone are news."""
        kinds = {p.kind for p in self.problems if p.treatment != "noted"}
        mends = ["mend the log"] if kinds - {"no_features"} and not reduced else []
        mends += ["add the missing documents to the features"] if "no_features" in kinds else []
        cures = [" and ".join(mends)]
        if self.clicks_alone:
            return "every row is a click; log what was displayed and not clicked, too"
        if "gap" in kinds and not reduced:
            cures.append("set partial=True if what is missing was not shown or not logged")
        if "no_time" in kinds and not reduced:
            cures.append("reduce it with periods=0, which needs no times and keeps these sessions")
        # To leave out most of a log is no way to read it.
        if "gap" not in kinds or self.bad_shares["sessions"] <= MOST_LEFT_OUT:
            cures.append(f"raise max_bad_share to leave them out{self._change()}")
        return ", or ".join(cures)

    def _change(self) -> str:
        """What leaving the bad sessions out would do to the share of clicked ones, if anything."""
        if self.clicked is None:
            return ""
        left = self.sessions - self.bad, self.clicked - self.bad_clicked
        if not _differ(self.bad, self.bad_clicked, *left):
            return ""
        now, then = self.clicked / self.sessions, left[1] / left[0]
        return (
            f", by which the share of sessions with a click would "
            f"{'rise' if then > now else 'fall'} from {now:.0%} to {then:.0%}"
        )

    def contrast(self, problem: Problem) -> str:
        """How often sessions that go for a problem were clicked beside others, if it differs."""
        if problem.treatment == "noted" or self.clicked is None or problem.clicked is None:
            return ""
        count, clicked = problem.count, problem.clicked
        others = self.sessions - count, self.clicked - clicked
        if not _differ(count, clicked, *others):
            return ""
        return (
            f"; {clicked / count:.0%} of these sessions have a click, and "
            f"{others[1] / others[0]:.0%} of the others"
        )

    def table(self) -> list[tuple[str, str, str, str]]:
        """What was found: in words, how often, what became of it, and an example."""
        found = [
            (p.says, p.times, str(p.treatment), p.example + self.contrast(p)) for p in self.problems
        ]
        filtered = [
            (FILTERS[name], counted(count, "sessions"), "dropped", f"the filter {name}")
            for name, count in self.filtered.items()
        ]
        return [*found, *filtered]

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ReadingReport:
        """The report that `to_dict` wrote; a `ValueError` or `TypeError` where it is none."""
        values = dict(content)
        values["problems"] = tuple(_of(Problem, problem) for problem in values["problems"])
        values["clients"] = tuple(_of(Client, client) for client in values["clients"])
        for kind in (problem.kind for problem in values["problems"]):
            if kind not in KINDS:
                raise ValueError(f"its account has a problem {shortened(kind)} that is not known")
        for name, count in values.setdefault("filtered", {}).items():
            if name not in FILTERS or not _is_count(count):
                raise ValueError(f"its account has no number of sessions for {shortened(name)}")
        return _of(cls, values)


class BadLogError(DataError):
    """Too much of a log cannot be used; `reading` has the whole account.

    Its sentence is as long as there are kinds of problems: whoever mends a log mends all at once.
    """

    def __init__(self, sentence: str, reading: ReadingReport) -> None:
        super().__init__(sentence)
        self.reading = reading


def _of(kind: type[Part], values: Mapping[str, Any]) -> Part:
    """A part of a report from plain values, each of the type that its field declares."""
    allowed: dict[str, Callable[[Any], bool]] = {
        "int": _is_count,
        "int | None": lambda value: value is None or _is_count(value),
        "float": lambda value: isinstance(value, int | float) and math.isfinite(value),
        "str": lambda value: isinstance(value, str),
        "bool": lambda value: isinstance(value, bool),
    }
    for each in fields(kind):
        fits = allowed.get(str(each.type))
        if fits is not None and each.name in values and not fits(values[each.name]):
            raise ValueError(
                f"its account has {shortened(values[each.name])} as {each.name}, which is no "
                f"{each.type}"
            )
    return kind(**values)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _differ(sessions: int, clicked: int, others: int, others_clicked: int) -> bool:
    """Whether two groups of sessions were clicked so differently that it is no luck."""
    if not sessions or not others:
        return False
    share, other = clicked / sessions, others_clicked / others
    common = (clicked + others_clicked) / (sessions + others)
    error = (common * (1 - common) * (1 / sessions + 1 / others)) ** 0.5
    return abs(share - other) > max(ERRORS * error, NOTABLE * max(share, other))
