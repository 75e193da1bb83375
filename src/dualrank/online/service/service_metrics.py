"""What a service counts, for Prometheus: requests, impressions, events, versions, the learner.

Counters and times are kept as requests are answered; what the learner and the store know is asked
when somebody reads the metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dualrank.extras import require
from dualrank.online.learner_record import LearnerRecord

BUCKETS = (
    *(0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02),
    *(0.03, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0),
)


class ServiceMetrics:
    """Counters of one service, in a registry of its own."""

    def __init__(self) -> None:
        client = require("serve", "prometheus_client")
        self._client = client
        self.registry = client.CollectorRegistry()
        common = {"registry": self.registry}
        self._requests = client.Counter(
            "dualrank_requests", "Requests by route and status.", ["route", "status"], **common
        )
        self._seconds = client.Histogram(
            "dualrank_request_seconds",
            "Time from a request to the end of its answer.",
            ["route"],
            buckets=BUCKETS,
            **common,
        )
        self.impressions = client.Counter(
            "dualrank_impressions", "Lists that were displayed.", **common
        )
        self.explored = client.Counter(
            "dualrank_explored_impressions", "Lists with an exchange, to explore.", **common
        )
        self._events = client.Counter(
            "dualrank_events", "Events by what became of them.", ["outcome"], **common
        )
        for outcome in ("new", "again", "late", "refused"):
            self._events.labels(outcome)
        self.errors = client.Counter(
            "dualrank_errors", "Requests that ended in an error of ours.", **common
        )
        self.learner_starts = client.Counter(
            "dualrank_learner_starts", "How often the learner's process was started.", **common
        )
        # Looking labels up costs more than counting: there are few of them.
        self._known: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._outcomes: dict[str, Any] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        known = self._known.get((route, status))
        if known is None:
            known = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._known[route, status] = known
        known[0].inc()
        known[1].observe(seconds)

    def happened(self, outcome: str, count: int) -> None:
        """Count events by what became of them."""
        if count:
            self._events.labels(outcome).inc(count)

    def watch(self, ask: Callable[[], dict[str, Any]]) -> None:
        """Ask for a state whenever metrics are read: `live`, `record`, `waiting`, `failures`."""
        self.registry.register(_Asked(ask))

    def text(self) -> bytes:
        """Everything as Prometheus reads it."""
        found: bytes = self._client.generate_latest(self.registry)
        return found

    @property
    def content_type(self) -> str:
        """How that is called."""
        return str(self._client.CONTENT_TYPE_LATEST)


class _Asked:
    """Gauges of what others know."""

    def __init__(self, ask: Callable[[], dict[str, Any]]) -> None:
        self._ask = ask

    def describe(self) -> list[Any]:
        """Nothing beforehand: to ask takes a service that is ready."""
        return []

    def collect(self) -> Iterator[Any]:
        """The values of now."""
        core = require("serve", "prometheus_client.core")
        gauge, counter = core.GaugeMetricFamily, core.CounterMetricFamily
        found = self._ask()
        live, record = found["live"], found["record"]
        yield gauge("dualrank_live_version", "The version that answers.", found["answers"])
        yield gauge(
            "dualrank_live_since_seconds", "When it went live, since 1970.", live.since or 0.0
        )
        yield gauge(
            "dualrank_waiting_for_commit",
            "Impressions and events that are not on disk yet.",
            found["waiting"],
        )
        yield gauge(
            "dualrank_ready", "Whether requests can be answered and kept.", float(found["ready"])
        )
        yield counter(
            "dualrank_versions_not_loaded", "Versions that could not be loaded.", found["failures"]
        )
        states = gauge("dualrank_versions", "Versions by what became of them.", labels=["state"])
        for state, count in found["states"].items():
            states.add_metric([state], count)
        yield states
        yield from _of_learner(record, gauge, counter)


def _of_learner(record: LearnerRecord, gauge: Any, counter: Any) -> Iterator[Any]:
    alarms = gauge("dualrank_alarms", "Alarms that are remembered, by kind.", labels=["kind"])
    kinds = [each.kind for each in record.alarms]
    for kind in sorted(set(kinds)):
        alarms.add_metric([kind], kinds.count(kind))
    yield alarms
    if record.alarms:
        last = record.alarms[-1].time
        yield gauge("dualrank_last_alarm_seconds", "When the last alarm was, since 1970.", last)
    yield gauge("dualrank_learner_rounds", "Rounds that are remembered.", len(record.rounds))
    if not record.rounds:
        return
    latest = record.rounds[-1]
    yield gauge("dualrank_learner_delay_seconds", "From impression to learned.", latest.delay)
    yield gauge("dualrank_learner_round_seconds", "When a round ended last.", latest.time)
    yield counter("dualrank_learner_sessions", "Sessions learned from.", latest.sessions)
    yield counter("dualrank_learner_clicks", "Their clicks.", latest.clicks)
    if latest.worth is not None:
        yield gauge("dualrank_corrected_clicks", "Corrected clicks a session.", latest.worth)
    for name, curve, what in (
        ("dualrank_examination", latest.examination, "Examination by position, the first being 1."),
        ("dualrank_examination_low", latest.low, "The low end of its 95% interval."),
        ("dualrank_examination_high", latest.high, "The high end of its 95% interval."),
    ):
        family = gauge(name, what, labels=["position"])
        for position, value in enumerate(curve, start=1):
            family.add_metric([str(position)], value)
        yield family
