"""A command replaces what it wrote, and what it did not write only where it is told to."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.cli.outputs import (
    CURVES,
    EXPERIMENT,
    GENERATED,
    MODEL,
    UPDATED,
    NewFile,
    check_output,
)
from dualrank.data.generator import generate_splits, with_document_ids
from dualrank.data.letor.writer import write_letor
from dualrank.errors import SettingsError
from dualrank.storage import write_table

TABLE = pa.table({"query_id": ["q"], "doc_id": ["d"]})


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    path = tmp_path_factory.mktemp("graded") / "train.txt"
    write_letor(with_document_ids(generate_splits("tiny").train), path)
    return path


def test_a_log_of_somebody_else_is_not_simulated_over(command, graded, tmp_path):
    log = tmp_path / "clicks.parquet"
    pq.write_table(TABLE, log)
    before = log.read_bytes()
    words = ("simulate", graded, "--out", log, "--sessions", 50)
    code, _, err = command(*words)
    assert code == 2
    assert "there is something of this name already" in err
    assert "--force" in err
    assert log.read_bytes() == before
    assert command(*words, "--force")[0] == 0
    assert command(*words)[0] == 0, "its own log is replaced"


@pytest.mark.parametrize("named", ["clicks.parquet", "*.parquet"])
def test_what_is_read_is_never_written_over(command, graded, tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    assert command("simulate", graded, "--out", "clicks.parquet", "--sessions", 50)[0] == 0
    before = (tmp_path / "clicks.parquet").read_bytes()
    code, _, err = command("reduce", named, "--out", "./clicks.parquet", "--force")
    assert code == 2
    assert "would write over clicks.parquet, which is read" in err
    assert (tmp_path / "clicks.parquet").read_bytes() == before


def test_files_are_known_by_their_mark_and_kind(tmp_path):
    out = tmp_path / "t.parquet"
    write_table(out, TABLE, "a run")
    check_output(out, NewFile("a run"), {}, force=False)
    for kind in (NewFile("a log"), NewFile()):
        with pytest.raises(SettingsError, match="already"):
            check_output(out, kind, {}, force=False)
        check_output(out, kind, {}, force=True)
    out.write_bytes(b"PAR1 no more")
    with pytest.raises(SettingsError, match="already"):
        check_output(out, NewFile("a run"), {}, force=False)


def test_a_link_and_a_file_beside_count_too(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "nowhere")
    (tmp_path / "y.txt.weights").write_text("1\n")
    for name in ("link.csv", "y.txt"):
        with pytest.raises(SettingsError, match="already"):
            check_output(tmp_path / name, NewFile(beside=".weights"), {}, force=False)


@pytest.mark.parametrize(
    ("kind", "file", "content"),
    [
        (MODEL, "manifest.json", {"ranker": {}}),
        (MODEL, "checkpoint.safetensors", {}),
        (CURVES, "dla.json", {"examination": [1.0]}),
        (EXPERIMENT, "results.json", {"experiment": "demo"}),
    ],
)
def test_folders_are_known_by_what_is_in_them(tmp_path, kind, file, content):
    check_output(tmp_path / "new", kind, {}, force=False)
    (tmp_path / ".hidden").touch()
    check_output(tmp_path, kind, {}, force=False)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(SettingsError, match="did not write"):
        check_output(tmp_path, kind, {}, force=False)
    check_output(tmp_path, kind, {}, force=True)
    (tmp_path / file).write_text(json.dumps(content))
    check_output(tmp_path, kind, {}, force=False)


def test_a_folder_that_is_replaced_as_a_whole_holds_nothing_else(tmp_path):
    check_output(tmp_path / "new", UPDATED, {}, force=False)
    for name in ("manifest.json", "ranker.safetensors", "report.html", "checkpoint-2.safetensors"):
        (tmp_path / name).write_text('{"ranker": {}}')
    (tmp_path / "twin").mkdir()
    check_output(tmp_path, UPDATED, {}, force=False)
    notes = tmp_path / "notes.txt"
    notes.touch()
    with pytest.raises(
        SettingsError, match=r"and 'notes\.txt' in it is no part of a model; .*--force"
    ):
        check_output(tmp_path, UPDATED, {}, force=False)
    check_output(tmp_path, UPDATED, {}, force=True)
    with pytest.raises(SettingsError, match="which is read"):
        check_output(tmp_path, UPDATED, {"log": str(notes)}, force=True)


def test_another_programs_manifest_marks_no_model(tmp_path):
    (tmp_path / "manifest.json").write_text('{"name": "an app"}')
    with pytest.raises(SettingsError, match="did not write"):
        check_output(tmp_path, MODEL, {}, force=False)


def test_a_curve_is_not_replaced_by_the_model_that_reads_it(tmp_path):
    curve = tmp_path / "propensity.json"
    curve.write_text('{"examination": [1.0]}')
    with pytest.raises(SettingsError, match="which is read"):
        check_output(tmp_path, MODEL, {"propensity": str(curve)}, force=True)


def test_a_file_of_a_folder_that_is_read_stays(tmp_path):
    part = tmp_path / "part-0.parquet"
    pq.write_table(TABLE, part)
    check_output(tmp_path / "new.parquet", NewFile("a run"), {"log": str(tmp_path)}, force=True)
    with pytest.raises(SettingsError, match="which is read"):
        check_output(part, NewFile("a run"), {"log": str(tmp_path)}, force=True)


def test_later_workers_find_what_the_first_has_begun(tmp_path, monkeypatch):
    (tmp_path / "begun").touch()
    monkeypatch.setenv("RANK", "1")
    check_output(tmp_path, MODEL, {}, force=False)


def test_generated_text_needs_a_word(command, tmp_path):
    words = ("generate", tmp_path / "data", "--preset", "tiny")
    assert command(*words)[0] == 0
    code, _, err = command(*words)
    assert code == 2
    assert "did not write" in err or "--force" in err
    assert command(*words, "--force")[0] == 0
    assert GENERATED.refuses(tmp_path / "data")


def test_a_method_is_no_folder_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "dla"
    out.mkdir()
    (out / "manifest.json").write_text('{"ranker": {}}')
    check_output(out, MODEL, {"method": "dla", "log": "clicks.parquet"}, force=False)
    with pytest.raises(SettingsError, match="which is read"):
        check_output(out, MODEL, {"log": "dla"}, force=False)


def test_a_pipe_in_a_folder_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "curve.json")
    with pytest.raises(SettingsError, match="did not write"):
        check_output(tmp_path, CURVES, {}, force=False)
