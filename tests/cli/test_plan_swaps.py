"""`dualrank plan-swaps`: from a log to an experiment."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dualrank.cli.plan_swaps_command import as_share
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.generator import generate_splits
from dualrank.data.lists import top_lists
from dualrank.errors import SettingsError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log of one ranker over twelve days."""
    root = tmp_path_factory.mktemp("swaps")
    data = generate_splits("tiny", seed=2).train
    lists = top_lists(data, data.grades + data.features[:, 0])
    table = sample_log(data, lists, PositionBasedUser(), 12_000, 3).to_table(data)
    session = pc.cast(table["session_id"], pa.int64())
    seconds = pc.add(pc.multiply(pc.bit_wise_and(pc.multiply(session, 7919), 8191), 126), 1.77e9)
    times = pc.cast(pc.cast(seconds, pa.int64()), pa.timestamp("s"))
    pq.write_table(table.append_column("timestamp", times), root / "log.parquet")
    return root


def test_designs_stand_side_by_side_and_one_is_recommended(command, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    code, out, err = command("plan-swaps", folder / "log.parquet")
    assert (code, err.strip()) == (0, "")
    for word in ("first with k ←", "neighbours", "full shuffles", "pair-swaps", "1 with 10"):
        assert word in out
    said = " ".join(out.split())
    assert "Swap the first result with one of the others in 5% of sessions for about" in said
    assert "days; costs at most" in said


def test_a_percentage_and_a_share_are_the_same(command, folder):
    percent, share = (
        command("plan-swaps", folder / "log.parquet", "--precision", p, "--share", s, "--json")[1]
        for p, s in (("20%", "2 %"), ("0.2", "0.02"))
    )
    assert json.loads(percent) == json.loads(share)
    found = json.loads(percent)
    assert (found["precision"], found["share"], found["positions"]) == (0.2, 0.02, 10)
    assert [d["design"] for d in found["designs"]] == [
        "first with k",
        "neighbours",
        "full shuffles",
    ]
    assert found["recommended"] == "first with k"
    # Some thousand sessions a day, as the log's own times have it.
    assert found["sessions_per_day"] == pytest.approx(1_000, rel=0.1)


def test_files_are_written_and_replaced(command, folder, tmp_path):
    words = ("plan-swaps", folder / "log.parquet", "--out", tmp_path / "plan", "--precision", "30%")
    for _ in range(2):
        code, out, _ = command(*words)
        assert code == 0
        assert "Beside it: figure-precision.svg, plan.json" in out
    plan = json.loads((tmp_path / "plan" / "plan.json").read_text())
    assert plan["precision"] == 0.3
    page = (tmp_path / "plan" / "report.html").read_text()
    assert "Swaps planned on log.parquet" in page
    assert "<svg" in page
    assert "dualrank plan-swaps" in page
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    code, _, err = command(*words[:2], "--out", tmp_path / "mine")
    assert code == 2
    assert "did not write" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--precision", "0"], "the precision is above 0% and below 100%, not 0%"),
        (["--precision", "200%"], "the precision is above 0% and below 100%, not 200%"),
        (["--precision", "10"], "the precision is above 0% and below 100%, not 1000%"),
        (["--precision", "ten[red]\x1b"], "--precision takes a percentage such as 10%"),
        (["--precision", "nan"], "the precision is above 0%"),
        (["--share", "120%"], "the share is above 0% and below 100%, not 120%"),
        (["--share", ""], "--share takes a percentage"),
        (["--positions", "1"], "a plan is for 2 positions or more, not 1"),
        (["--positions", "30"], "a plan for 30 positions, but lists show 10"),
    ],
)
def test_what_cannot_be_wanted_is_one_sentence(command, folder, words, sentence):
    code, out, err = command("plan-swaps", folder / "log.parquet", *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


def test_a_log_that_cannot_be_planned_from_is_one_sentence(command, folder, tmp_path):
    table = pq.read_table(folder / "log.parquet")
    at = table.column_names.index("clicked")
    silent = table.set_column(at, "clicked", pa.array([False] * len(table)))
    pq.write_table(silent, tmp_path / "silent.parquet")
    pq.write_table(table.filter(pc.equal(table["position"], 1)), tmp_path / "top.parquet")
    for name, sentence in (
        ("silent", "position 1 was clicked 0 times in 12,000 sessions"),
        ("top", "the lists show one position only"),
        ("missing", "there is no such file"),
    ):
        code, out, err = command("plan-swaps", tmp_path / f"{name}.parquet")
        assert (code, out) == (2, "")
        assert sentence in err
        assert len(err.strip().splitlines()) == 1


def test_shares_are_typed_as_people_type_them():
    assert as_share("share", "12.5%") == as_share("share", "0.125") == 0.125
    for text in ("1_0%", "%", "10%%", "a tenth"):
        with pytest.raises(SettingsError, match="such as 10%"):
            as_share("share", text)


def test_help_has_an_example(command):
    code, out, _ = command("plan-swaps", "--help")
    assert code == 0
    assert "dualrank plan-swaps clicks.parquet --precision 10%" in " ".join(out.split())
