"""What a learner writes for others to read, and for itself."""

import json

import pytest

from dualrank.errors import CheckpointError, DataError
from dualrank.online import learner_record
from dualrank.online.learner import learner_state
from dualrank.online.learner.learner_state import LearnerState
from dualrank.online.learner_record import Alarm, LearnerRecord, Round

ROUND = Round(1.0, 100, 20, 3.5, 2, [1.0, 0.5], [1.0, 0.4], [1.0, 0.6], 0.3, 0.2, 0.4)


def test_a_record_is_read_as_it_was_written(tmp_path):
    assert LearnerRecord.read(tmp_path) == LearnerRecord()
    record = LearnerRecord([ROUND], [Alarm(2.0, "curve", "users look less at position 9")])
    record.write(tmp_path)
    assert LearnerRecord.read(tmp_path) == record


def test_a_record_keeps_the_last_rounds_and_alarms(tmp_path, monkeypatch):
    monkeypatch.setattr(learner_record, "MOST_ROUNDS", 2)
    monkeypatch.setattr(learner_record, "MOST_ALARMS", 1)
    rounds = [Round(float(n), n, 0, 0.0, 1) for n in range(4)]
    LearnerRecord(rounds, [Alarm(0.0, "a", "b"), Alarm(1.0, "c", "d")]).write(tmp_path)
    found = LearnerRecord.read(tmp_path)
    assert (found.rounds, found.alarms) == (rounds[2:], [Alarm(1.0, "c", "d")])


@pytest.mark.parametrize("text", ["[]", "{}", '{"rounds": [{"no": 1}], "alarms": []}', "nan"])
def test_a_damaged_record_is_one_sentence(tmp_path, text):
    (tmp_path / learner_record.NAME).write_text(text)
    with pytest.raises(DataError, match=r"learner\.json: (damaged|not JSON)"):
        LearnerRecord.read(tmp_path)


def test_a_state_is_read_as_it_was_written(tmp_path):
    assert LearnerState.read(tmp_path) is None
    state = LearnerState(
        model=3,
        live=2,
        learned=9,
        decided=False,
        rounds=((1, 4, 1), (5, 9, 2)),
        changed_at=5,
        changed_version=4,
        believed=(1.0, 0.5),
        curve=(1.0, 0.4),
        suspect=True,
        sessions=10,
        clicks=4,
        rates=(0.5, 0.25),
        starts=1,
    )
    state.write(tmp_path)
    assert LearnerState.read(tmp_path) == state


@pytest.mark.parametrize(
    "change",
    [{"model": "3"}, {"rounds": [[1]]}, {"rates": ["x"]}, {"more": 1}, {"format": 2},
     {"decided": 1}, {"learned": True}],
)  # fmt: skip
def test_a_damaged_state_says_what_to_do(tmp_path, change):
    LearnerState(1, 1).write(tmp_path)
    path = tmp_path / learner_state.NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CheckpointError, match=r"damaged: .*; remove it, and the learner goes on"):
        LearnerState.read(tmp_path)
