"""The learner: follows closed segments, learns in rounds, and decides which version is live.

A round: new segments are read, and what looks wrong is left out (`round_clicks`). The curve is
compared with that of the lists before (`drift_watch`). The model learns from the queries that are
not held out (`Model.update`), and becomes a candidate, which goes live unless held-out clicks find
it worse than the live version or than the anchor (`gate`). The live version is asked the same
after every round, and is taken back once it is surely worse than the one before it or the anchor.

The *anchor* is the last version that was clearly better than the anchor before it; the first
version is the first one, and where an anchor was taken back, the next one that goes live is it.
Many steps down, none of which is noticed by itself, end there.

After a candidate was refused, learning goes on from it: what was clicked is in it, and the next one
is compared with the live version again. Where it was surely worse, learning goes back to the live
version, and after a rollback by a person it goes on from what they put there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dualrank.data.dataset import Dataset
from dualrank.errors import DataError, SettingsError
from dualrank.learning.model import Model
from dualrank.online.learner.curve_of_today import curve_of_today
from dualrank.online.learner.drift_watch import movement
from dualrank.online.learner.laid_out import LaidOut
from dualrank.online.learner.learner_state import MOST_ROUNDS, LearnerState
from dualrank.online.learner.remembered_rounds import RememberedRounds
from dualrank.online.learner.round_clicks import (
    ClosedSegments,
    HeldOutQueries,
    RoundClicks,
    read_round,
)
from dualrank.online.learner.round_entry import entry_of
from dualrank.online.learner.version_contest import VersionContest, rivals
from dualrank.online.learner_record import Alarm, LearnerRecord
from dualrank.online.versions import Note, Version, Versions
from dualrank.sentences import reason_of

MOST_RATES = 10
MOST_TRIES = 20
"""Looks at a segment that cannot be read, after which it is left out."""
MANY_STARTS = 3
"""Starts none of which came to the end of a look, after which that is an alarm."""
LEARN_POSITION = ("dla", "likelihood")
"""Methods whose curve is what clicks say, by position alone."""
RESULTS = 10
"""Rows of a segment that are about a session."""

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
        self.waits_for = ""
        """The segment that could not be used last, and why, in words."""
        note = versions.note()
        live = versions.load(note.live)
        self.features = None if features is None else features.with_features(live.feature_names)
        found = LearnerState.read(versions.folder)
        self.state = found or LearnerState(note.live, note.live, believed=_curve(live))
        self._rounds = RememberedRounds()
        self._live_changed = True
        self._started = False
        self._clear_up(note)
        self._rounds.read_again(
            self.state.rounds, segments.closed(), self._read_segments, self._load_or_model
        )

    def step(self) -> bool:
        """Look once: at what is live, and at new segments; true where something was done."""
        if not self._started:
            self._count_start()
        done = self._look()
        if self.state.starts:
            self._keep(starts=0)
        return done

    def _count_start(self) -> None:
        """Say so where learners die of what they find, and nobody reads their log."""
        self._keep(starts=self.state.starts + 1)
        self._started = True
        if self.state.starts == MANY_STARTS:
            self.say(
                "learner",
                f"the learner was started {MANY_STARTS} times and each time ended before it came "
                f"to the end of a round, after segment {self.state.learned}; its log says why",
            )

    def _look(self) -> bool:
        note = self._follow_people()
        if not self.state.decided:
            self._decide(self.state.model)
            return True
        new = self._new_segments()
        numbers = self._up_to_a_gap(new) if new else []
        if numbers:
            return self._round(numbers)
        return self._watch(note) if self._live_changed else False

    def _follow_people(self) -> Note:
        """Go on from what somebody else put live."""
        note = self.versions.note()
        if note.live != self.state.live:
            self._live_changed = True
            # A learner that was killed after its candidate went live knows of no decision.
            if self.state.decided or note.live != self.state.model:
                self.say("version", f"version {note.live} was put live; learning goes on from it")
            if not self.state.decided:
                why = f"version {note.live} was put live before it was decided about"
                self.versions.refuse(self.state.model, why)
            self._keep(model=note.live, live=note.live, decided=True)
        return note

    def _watch(self, note: Note) -> bool:
        """Take the live version back where it is surely worse than one that could follow it."""
        self._live_changed = False
        found = self._contest().better_than_live(note) if rivals(self.versions, note) else None
        if found is None:
            return False
        other, why = found
        follows = self.versions.take_back(note.live, why, to=other)
        if follows.number != other:
            # Somebody else put another one live meanwhile: that is what they want.
            self._follow_people()
            return True
        self.say("version", f"version {note.live} was taken back: {why}")
        self._keep(model=follows.number, live=follows.number, decided=True)
        return True

    @property
    def has_more(self) -> bool:
        """Whether something is left to learn or to decide."""
        return bool(self._new_segments()) or not self.state.decided

    def _new_segments(self) -> list[int]:
        """Those that are closed and not learned, in order."""
        return [number for number in self.segments.closed() if number > self.state.learned]

    def _up_to_a_gap(self, new: Sequence[int]) -> Sequence[int]:
        """The first of the new segments, up to one that is missing."""
        expected = self.state.learned + 1 if self.state.learned else new[0]
        if new[0] > expected:
            # It may be about to be written anew; one that was removed never comes.
            self._unreadable(expected, new[0] - 1, f"segment {expected} is missing")
            return []
        gap = next((i for i, n in enumerate(new) if n != new[0] + i), len(new))
        return new[:gap]

    def _round(self, numbers: Sequence[int]) -> bool:
        read = self._read(numbers)
        if read is None:
            return False
        found, laid = read
        for each in found.suspicions:
            self.say(each.kind, each.said)
        before = self._rounds.since(self.state.changed_at)
        scored_by = self.state.model
        self._rounds.add(found, laid)
        # A version that is worse goes first: what is learned next does not go on from it.
        self._watch(self.versions.note())
        moved = None if before is None or laid is None else movement(before, laid)
        alarmed = moved is not None and moved.is_clear
        if moved is not None and alarmed:
            self.say("curve", moved.said)
        # The round in which users changed mixes two habits: the one after it starts anew, too.
        changed = alarmed or self.state.suspect
        # A version from before the change, to which somebody went back, does not know of it.
        knows = self.state.model >= self.state.changed_version
        first, last = found.segments[0], found.segments[-1]
        spans = [] if laid is None else [(first, last, scored_by)]
        progress: dict[str, Any] = {
            "learned": last,
            "rounds": (*self.state.rounds, *spans)[-MOST_ROUNDS:],
            "changed_at": first if changed else self.state.changed_at,
            "changed_version": (
                max(self.versions.note().versions) + 1 if changed else self.state.changed_version
            ),
            "believed": () if changed else self.state.believed,
            "curve": () if changed else self.state.curve,
            "suspect": alarmed,
            "sessions": self.state.sessions + found.sessions,
            "clicks": self.state.clicks + found.clicks,
            "rates": (*self.state.rates, found.rate)[-MOST_RATES:],
        }
        candidate = self._learned(found, changed or not knows, progress)
        if candidate is None:
            self._keep(**progress)
        else:
            self._offer(candidate, f"learned from segments {first} to {last}", progress)
        self._record(found)
        return True

    def offer(self, model: Model, why: str) -> Version:
        """Let a model that was made elsewhere through the gate, as one that was learned here."""
        self._follow_people()
        return self._offer(model, why, {})

    def _offer(self, model: Model, why: str, progress: dict[str, Any]) -> Version:
        sessions = int(progress.get("sessions", self.state.sessions))
        made = self.versions.add(model, why, sessions=sessions, parent=self.state.model)
        self._models[made.number] = model
        self._keep(model=made.number, decided=False, **progress)
        self._decide(made.number)
        return self.versions.note().versions[made.number]

    def _read(self, numbers: Sequence[int]) -> tuple[RoundClicks, LaidOut | None] | None:
        """As many of the segments as make a round, and as the model sees them.

        What cannot be read or scored is found by taking one segment at a time.
        """
        taken: list[int] = []
        sessions = 0
        for number in numbers:
            try:
                sessions += _rows_in(self.segments, number) // RESULTS
            except DataError as error:
                if not taken:
                    self._unreadable(number, number, str(error))
                    return None
                break
            taken.append(number)
            if sessions >= self.settings.round_sessions:
                break
        try:
            found = self._read_segments(taken, self.state.rates)
            return found, found.laid_out(self._load(self.state.model))
        except DataError as error:
            if len(taken) > 1:
                return self._read(taken[:1])
            self._unreadable(taken[0], taken[0], f"segment {taken[0]} cannot be used: {error}")
            return None

    def _read_segments(self, numbers: Sequence[int], rates: Sequence[float] = ()) -> RoundClicks:
        base = self._load(self.state.model)
        return read_round(
            self.segments,
            numbers,
            self.features,
            rates,
            varies=base.scaler.kept,
            takes_missing=base.ranker.takes_missing,
            scaler=base.scaler,
        )

    def _unreadable(self, number: int, last: int, said: str) -> None:
        """Wait for whoever writes segments to mend one; not for ever."""
        self.waits_for = said
        self._tries[number] = tries = self._tries.get(number, 0) + 1
        if tries == 1:
            self.say("learner", f"{said}; it is waited for")
        elif tries >= MOST_TRIES:
            self.say("learner", f"{said}; learning goes on without it")
            self._keep(learned=last)

    def _learned(self, found: RoundClicks, changed: bool, progress: dict[str, Any]) -> Model | None:
        """The model after the clicks of a round; nothing where nothing could be learned.

        What they say about position is noted in `progress`.
        """
        base = self._load(self.state.model)
        log = found.part(self._held_out, held=False)
        if log is None or found.dataset is None or not log.clicks.any():
            return None
        try:
            learned = base.update(
                log,
                found.dataset,
                half_life=self.settings.half_life,
                changed=changed,
                steps=self.settings.steps,
                validation=0.0,
                seed=self.settings.seed + found.segments[-1],
            )
        except DataError as error:
            self.say("learner", f"nothing was learned: {error}")
            return None
        begin = int(progress["changed_at"])
        today, before = self._rounds.since(begin), self._rounds.before(begin)
        method = learned.training.get("update", {}).get("method")
        if today is None or base.propensity is None or method not in LEARN_POSITION:
            return learned
        curve = curve_of_today(base.propensity, today, before, progress["believed"])
        if curve is None:
            return learned
        progress["curve"] = tuple(curve.examination.tolist())
        return replace(learned, propensity=curve)

    def _decide(self, number: int) -> None:
        """Let a candidate go live, or say why not.

        One that was learned while somebody put another version live goes on from what they do not
        want, and was compared with what is live no longer: it is refused.
        """
        note = self._follow_people()
        if self.state.decided:
            return
        if note.versions[number].state == "candidate":
            contest = self._contest()
            standing, said = contest.standing(number, note)
            if standing != "not worse":
                self.versions.refuse(number, said)
                logger.info("version %d was refused: %s", number, said)
                self._keep(decided=True)
                if standing == "surely worse":
                    self.say("learner", f"version {number} was refused: {said}")
                    self._keep(model=note.live)
                return
            if self.versions.go_live(number, said, over=note.live).state != "live":
                self._follow_people()
                return
            logger.info("version %d is live: %s", number, said)
            self._keep(decided=True, live=number)
            if contest.is_new_anchor(number, self.versions.note()):
                self.versions.hold_against(number)
        self._keep(decided=True)

    def _contest(self) -> VersionContest:
        """The held-out clicks of the last rounds, which versions are compared by.

        All versions are compared by one curve, whichever is judged and also after a restart: that
        of the last rounds, which does not depend on what a candidate learned from them.
        """
        curve = self._load(self.versions.note().live).propensity
        if curve is not None and len(self.state.curve) == curve.depth:
            curve = replace(curve, examination=np.array(self.state.curve), low=None, high=None)
        gate = self._rounds.gate(self._held_out, curve, self.state.changed_at)
        return VersionContest(self.versions, gate, self._load)

    def _load(self, number: int) -> Model:
        if number not in self._models:
            wanted = {self.state.model, self.versions.note().live, self.versions.note().anchor}
            self._models = {n: m for n, m in self._models.items() if n in wanted}
            self._models[number] = self.versions.load(number)
        return self._models[number]

    def _load_or_model(self, number: int) -> Model:
        """A version, or where it is gone the one that learning goes on from."""
        return self._load(number if self.versions.has(number) else self.state.model)

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

    def say(self, kind: str, said: str) -> None:
        """Raise an alarm, which servers show."""
        alarm = Alarm(time.time(), kind, said)
        logger.warning("%s: %s", kind, said)
        record = LearnerRecord.read(self.versions.folder)
        LearnerRecord(record.rounds, [*record.alarms, alarm]).write(self.versions.folder)

    def _record(self, found: RoundClicks) -> None:
        record = LearnerRecord.read(self.versions.folder)
        curve = self._load(self.state.model).propensity
        made = entry_of(found, curve, self.state, self.versions.note().live)
        LearnerRecord([*record.rounds, made], record.alarms).write(self.versions.folder)


def _rows_in(segments: ClosedSegments, number: int) -> int:
    path = segments.clicks(number)
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path}: not readable as a segment ({reason_of(error)})") from error


def _curve(model: Model) -> tuple[float, ...]:
    return () if model.propensity is None else tuple(model.propensity.examination.tolist())
