"""The learner: follows closed segments, learns in rounds, and decides which version is live.

A round: new segments are read, and what looks wrong is left out (`round_clicks`). The curve is
compared with that of the lists before (`drift_watch`). The model learns from the queries that are
not held out (`Model.update`), and becomes a candidate, which goes live unless held-out clicks find
it worse than the live version or than the anchor (`gate`). The live version is asked the same
after every round, and is taken back once it is surely worse than the one before it or the anchor.

The *anchor* is the last version that was clearly better than the anchor before it; the first
version is the first one. Many steps down, none of which is noticed by itself, end there.

After a candidate was refused, learning goes on from it: what was clicked is in it, and the next one
is compared with the live version again. After `MOST_REFUSED` in a row it goes back to the live
version, and after a rollback by a person it goes on from what they put there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dualrank.certainty import NORMAL_95
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError, DualrankError, SettingsError
from dualrank.learning.model import Model
from dualrank.online.drift_watch import movement, width_of_curve
from dualrank.online.gate import SURE, Gate
from dualrank.online.learner_record import Alarm, LearnerRecord, Round
from dualrank.online.learner_state import MOST_ROUNDS, LearnerState
from dualrank.online.round_clicks import (
    ClosedSegments,
    HeldOutQueries,
    RoundClicks,
    pooled,
    read_round,
)
from dualrank.online.versions import Note, Version, Versions
from dualrank.propensity.propensity import Propensity

MOST_REFUSED = 5
"""Candidates refused in a row, after which the learner goes back to the live version."""
MOST_RATES = 10
MOST_TRIES = 20
"""Looks at a segment that cannot be read, after which it is left out."""
MEMORY_SESSIONS = 400_000
MEMORY_LISTS = 40_000
"""Of the last rounds, as many sessions or lists as are remembered to compare by."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LearnerSettings:
    """How a learner learns."""

    held_out: Annotated[
        float, "The share of queries that is held out for ever, to compare versions by."
    ] = 0.1
    half_life: Annotated[
        float | None, "Sessions after which a remembered list counts half as much."
    ] = None
    round_sessions: Annotated[
        int, "A round takes no more segments once it has so many sessions.", {"min": 1}
    ] = 100_000
    steps: Annotated[int | None, "Training steps of a round."] = None
    seed: Annotated[int, "The seed of everything random.", {"min": 0}] = 0

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise SettingsError(f"held_out is a share between 0 and 1, not {self.held_out}")
        if self.half_life is not None and not self.half_life > 0:
            raise SettingsError(f"half_life is a number of sessions, not {self.half_life}")


class Learner:
    """One learner of a folder of versions, which follows the segments of one store of events."""

    def __init__(
        self,
        versions: Versions,
        segments: ClosedSegments,
        settings: LearnerSettings | None = None,
        features: Dataset | None = None,
    ) -> None:
        self.versions = versions
        self.segments = segments
        self.settings = settings or LearnerSettings()
        self._held_out = HeldOutQueries(self.settings.held_out)
        self._models: dict[int, Model] = {}
        self._tries: dict[int, int] = {}
        note = versions.note()
        live = versions.load(note.live)
        self.features = None if features is None else features.with_features(live.feature_names)
        found = LearnerState.read(versions.folder)
        self.state = found or LearnerState(note.live, note.live)
        self._parts: list[RoundClicks] = []
        self._remember(note)
        self._clear_up(note)

    def step(self) -> bool:
        """Look once: at what is live, and at new segments; true where something was done."""
        note = self._follow_people()
        if not self.state.decided:
            self._decide(self.state.model, self._gate())
            return True
        numbers = self._new_segments()
        if numbers:
            return self._round(numbers)
        return self._watch(note) if self._live_changed else False

    # What is live

    _live_changed = True

    def _follow_people(self) -> Note:
        """Go on from what somebody else put live."""
        note = self.versions.note()
        if note.live != self.state.live:
            self._live_changed = True
            self._say("version", f"version {note.live} was put live; learning goes on from it")
            if not self.state.decided:
                why = f"version {note.live} was put live before it was decided about"
                self.versions.refuse(self.state.model, why)
            self._keep(model=note.live, live=note.live, decided=True, refused=0)
        return note

    def _watch(self, note: Note) -> bool:
        """Take the live version back where it is surely worse than one that could follow it."""
        self._live_changed = False
        others = self._rivals(note)
        gate = self._gate() if others else None
        if gate is None:
            return False
        live = self._scores(note.live, gate.dataset)
        for other in others:
            judged = gate.judge(live, self._scores(other, gate.dataset))
            if judged.is_worse(SURE):
                why = f"it is worse: {judged.said(f'version {other}')}"
                follows = self.versions.take_back(note.live, why, to=other)
                self._say("version", f"version {note.live} was taken back: {why}")
                self._keep(model=follows.number, live=follows.number, decided=True, refused=0)
                return True
        return False

    def _rivals(self, note: Note) -> list[int]:
        """Versions that could follow the live one: the one before it, and the anchor."""
        before = self.versions.before(note)
        there = dict.fromkeys(each for each in (before, note.anchor) if each is not None)
        return [
            number
            for number in there
            if note.versions[number].state == "replaced" and self.versions.has(number)
        ]

    # A round

    def _new_segments(self) -> list[int]:
        """Those that are closed and not learned, until there are sessions enough."""
        return [n for n in self.segments.closed() if n > self.state.learned]

    def _round(self, numbers: Sequence[int]) -> bool:
        found = self._read(numbers)
        if found is None:
            return False
        base = self._load(self.state.model)
        alarms = [self._say(each.kind, each.said) for each in found.suspicions]
        held = found.part(self._held_out)
        trained = found.part(lambda ids: ~self._held_out(ids))
        moved = self._moved(found, base)
        suspect = moved is not None
        if moved is not None:
            alarms.append(self._say("curve", moved))
        # The round in which users changed mixes two habits: the one after it starts anew, too.
        changed = suspect or self.state.suspect
        first, last = found.segments[0], found.segments[-1]
        progress: dict[str, Any] = {
            "learned": last,
            "rounds": (*self.state.rounds, (first, last))[-MOST_ROUNDS:],
            "changed_at": first if changed else self.state.changed_at,
            "suspect": suspect,
            "sessions": self.state.sessions + found.sessions,
            "clicks": self.state.clicks + found.clicks,
            "rates": (*self.state.rates, found.rate)[-MOST_RATES:],
        }
        self._remember_round(found)
        candidate = self._learned(base, trained, found.dataset, changed, last)
        if candidate is None:
            self._keep(**progress)
        else:
            why = f"learned from segments {first} to {last}"
            self._offer(candidate, why, progress)
        if held is not None:
            self._watch(self.versions.note())
        self._record(found, alarms)
        return True

    def offer(self, model: Model, why: str) -> Version:
        """Let a model that was made elsewhere through the gate, as one that was learned here."""
        return self._offer(model, why, {})

    def _offer(self, model: Model, why: str, progress: dict[str, Any]) -> Version:
        sessions = int(progress.get("sessions", self.state.sessions))
        made = self.versions.add(model, why, sessions=sessions, parent=self.state.model)
        self._models[made.number] = model
        self._keep(model=made.number, decided=False, **progress)
        self._decide(made.number, self._gate())
        return self.versions.note().versions[made.number]

    def _read(self, numbers: Sequence[int]) -> RoundClicks | None:
        """As many of the segments as make a round."""
        base = self._load(self.state.model)
        taken: list[int] = []
        sessions = 0
        for number in numbers:
            try:
                sessions += _sessions_in(self.segments, number)
            except DataError as error:
                if taken:
                    break
                self._unreadable(number, error)
                return None
            taken.append(number)
            if sessions >= self.settings.round_sessions:
                break
        return self._read_segments(taken, self.state.rates, base)

    def _read_segments(
        self, numbers: Sequence[int], rates: Sequence[float], base: Model
    ) -> RoundClicks:
        return read_round(
            self.segments,
            numbers,
            self.features,
            rates,
            varies=base.scaler.kept,
            takes_missing=base.ranker.takes_missing,
        )

    def _unreadable(self, number: int, error: DataError) -> None:
        """A segment may be written anew by whoever wrote it; not for ever."""
        self._tries[number] = tries = self._tries.get(number, 0) + 1
        if tries == 1:
            self._say("learner", f"{error}; it is tried again")
        elif tries >= MOST_TRIES:
            self._say("learner", f"{error}; segment {number} is left out")
            self._keep(learned=number)

    def _learned(
        self,
        base: Model,
        log: ClickLog | None,
        dataset: Dataset | None,
        changed: bool,
        seed: int,
    ) -> Model | None:
        """The model after the clicks of a round; nothing where nothing could be learned."""
        if log is None or dataset is None or not log.clicks.any():
            return None
        settings = self.settings
        try:
            return base.update(
                log,
                dataset,
                half_life=settings.half_life,
                changed=changed,
                steps=settings.steps,
                seed=settings.seed + seed,
            )
        except DataError as error:
            self._say("learner", f"nothing was learned: {error}")
            return None

    def _moved(self, found: RoundClicks, base: Model) -> str | None:
        """Whether the curve of this round is another one than before, in words."""
        parts = self._since_change()
        if found.log is None or found.dataset is None or not parts:
            return None
        before, dataset = pooled(parts)
        after, new = pooled([(found.log, found.dataset)])
        names = np.concatenate([dataset.query_ids, new.query_ids])
        number = np.unique(names, return_inverse=True)[1]
        queries = number[: len(dataset)], number[len(dataset) :]
        moved = movement(
            before,
            after,
            base.predict(dataset),
            base.predict(new),
            (queries[0][before.lists.queries], queries[1][after.lists.queries]),
        )
        return moved.said if moved is not None and moved.is_clear else None

    # What decides

    def _decide(self, number: int, gate: Gate | None) -> None:
        """Let a candidate go live, or say why not."""
        note = self.versions.note()
        if note.versions[number].state == "candidate":
            worse, said = self._compare(number, note, gate)
            if worse:
                self.versions.refuse(number, said)
                self._refused(number, note)
                return
            self.versions.go_live(number, said)
            logger.info("version %d is live: %s", number, said)
            note = self.versions.note()
            self._move_anchor(note, gate)
        self._keep(decided=True, live=self.versions.note().live, refused=0)

    def _compare(self, number: int, note: Note, gate: Gate | None) -> tuple[bool, str]:
        if gate is None:
            return True, "no clicks are held out yet to compare by"
        scores = self._scores(number, gate.dataset)
        said = []
        rivals = dict.fromkeys([note.live, note.anchor])
        for other in rivals:
            if other is None or not self.versions.has(other):
                continue
            judged = gate.judge(scores, self._scores(other, gate.dataset))
            words = judged.said(f"version {other}")
            if not judged.can_tell:
                return True, words
            if judged.is_worse():
                return True, f"worse {words}"
            said.append(words)
        return False, f"not worse {'; '.join(said)}"

    def _refused(self, number: int, note: Note) -> None:
        refused = self.state.refused + 1
        logger.info("version %d was refused", number)
        if refused < MOST_REFUSED:
            self._keep(decided=True, live=note.live, refused=refused)
            return
        self._say(
            "learner",
            f"{refused} candidates in a row did not go live; learning goes on from version "
            f"{note.live}",
        )
        self._keep(decided=True, live=note.live, model=note.live, refused=0)

    def _move_anchor(self, note: Note, gate: Gate | None) -> None:
        if gate is None or note.anchor == note.live:
            return
        if note.anchor is not None and self.versions.has(note.anchor):
            live, anchor = (self._scores(n, gate.dataset) for n in (note.live, note.anchor))
            if not gate.judge(live, anchor).is_better():
                return
        self.versions.hold_against(note.live)

    def _gate(self) -> Gate | None:
        """The held-out clicks of the last rounds."""
        parts, current = [], []
        for part in self._parts:
            held = part.part(self._held_out)
            if held is not None and part.dataset is not None:
                parts.append((held, part.dataset))
                current.append(np.full(len(held.lists), part.segments[0] >= self.state.changed_at))
        if not parts:
            return None
        log, dataset = pooled(parts)
        curve = self._load(self.state.model).propensity
        if curve is not None and (curve.context is not None or curve.depth < log.lists.depth):
            curve = None
        return Gate(log, dataset, curve, np.concatenate(current))

    def _scores(self, number: int, dataset: Dataset) -> NDArray[np.float32]:
        return self._load(number).predict(dataset)

    # What is remembered

    def _remember(self, note: Note) -> None:
        """Read the last rounds again."""
        base = self._load(self.state.model if self.versions.has(self.state.model) else note.live)
        sessions = 0
        for first, last in reversed(self.state.rounds):
            numbers = [n for n in self.segments.closed() if first <= n <= last]
            try:
                part = self._read_segments(numbers, (), base) if numbers else None
            except DualrankError:
                part = None
            if part is None:
                continue
            self._parts.insert(0, part)
            sessions += part.sessions
            if sessions >= MEMORY_SESSIONS:
                break
        self._forget()

    def _remember_round(self, found: RoundClicks) -> None:
        self._parts.append(found)
        self._forget()

    def _forget(self) -> None:
        sessions = lists = 0
        for kept, part in enumerate(reversed(self._parts)):
            sessions += part.sessions
            lists += 0 if part.log is None else len(part.log.lists)
            if kept and (sessions > MEMORY_SESSIONS or lists > MEMORY_LISTS):
                del self._parts[: len(self._parts) - kept]
                return

    def _since_change(self) -> list[tuple[ClickLog, Dataset]]:
        return [
            (part.log, part.dataset)
            for part in self._parts
            if part.log is not None
            and part.dataset is not None
            and part.segments[0] >= self.state.changed_at
        ]

    def _load(self, number: int) -> Model:
        if number not in self._models:
            wanted = {self.state.model, self.versions.note().live, self.versions.note().anchor}
            self._models = {n: m for n, m in self._models.items() if n in wanted}
            self._models[number] = self.versions.load(number)
        return self._models[number]

    def _keep(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]
        self.state.write(self.versions.folder)

    def _clear_up(self, note: Note) -> None:
        """What a killed round left behind does not go live; what somebody removed is not missed."""
        for number, version in note.versions.items():
            if version.state == "candidate" and number != self.state.model:
                self.versions.refuse(number, "its round was interrupted, and done again")
        if not self.versions.has(self.state.model):
            self._keep(model=note.live, decided=True)

    # What is said

    def _say(self, kind: str, said: str) -> Alarm:
        alarm = Alarm(time.time(), kind, said)
        logger.warning("%s: %s", kind, said)
        record = LearnerRecord.read(self.versions.folder)
        LearnerRecord(record.rounds, [*record.alarms, alarm]).write(self.versions.folder)
        return alarm

    def _record(self, found: RoundClicks, alarms: Sequence[Alarm]) -> None:
        now = time.time()
        version = self.versions.note().live
        curve = self._load(self.state.model).propensity
        record = LearnerRecord.read(self.versions.folder)
        made = Round(
            time=now,
            sessions=self.state.sessions,
            clicks=self.state.clicks,
            delay=max(now - found.latest, 0.0) if found.latest else 0.0,
            version=version,
            **self._curve_with_interval(curve),
            **_worth(found, curve),
        )
        LearnerRecord([*record.rounds, made], record.alarms).write(self.versions.folder)

    def _curve_with_interval(self, curve: Propensity | None) -> dict[str, Any]:
        parts = self._since_change()
        if curve is None or not parts:
            return {}
        log, dataset = pooled(parts)
        width = width_of_curve(log, self._load(self.state.model).predict(dataset))
        width = np.append(width, np.full(curve.depth, np.inf))[: curve.depth]
        low, high = curve.examination / width, np.minimum(curve.examination * width, 1e6)
        return {
            "examination": curve.examination.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
        }


def _worth(found: RoundClicks, curve: Propensity | None) -> dict[str, Any]:
    """Clicks a session, each weighted by the inverse examination of its position."""
    log = found.log
    if log is None or curve is None or curve.depth < log.lists.depth:
        return {}
    weights = curve.weights[: log.lists.depth]
    value = np.bincount(log.lists.queries, log.clicks_per_list @ weights)
    sessions = np.bincount(log.lists.queries, log.sessions_per_list)
    value, sessions = value[sessions > 0], sessions[sessions > 0]
    mean, queries = value.sum() / sessions.sum(), len(sessions)
    if queries < 2:
        return {"worth": float(mean)}
    spread = (value - mean * sessions).std(ddof=1) * np.sqrt(queries) / sessions.sum()
    reach = NORMAL_95 * spread
    return {
        "worth": float(mean),
        "worth_low": float(mean - reach),
        "worth_high": float(mean + reach),
    }


def _sessions_in(segments: ClosedSegments, number: int) -> int:
    """About as many sessions as a segment has, from its number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = segments.clicks(number)
    try:
        return int(pq.read_metadata(path).num_rows) // 10
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path}: not readable as a segment ({error})") from error
