"""What a user names is what is read, whatever characters are in its name, and nothing else is."""

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dualrank.data.features import read_features
from dualrank.data.log.duckdb_engine import DuckDBEngine
from dualrank.data.log.read_log import read_log
from dualrank.data.log.text_formats import _lines
from dualrank.data.runs import read_run
from dualrank.errors import DataError, SettingsError

from .conftest import long_table

ODD = ["a[1].csv", "a?.csv", "a*.csv", "a[.csv", "[[].csv", "\\*.csv", "a\\[1].csv", "x\ny.csv"]
ODD += ["it's.csv", "{a,b}.csv", "**.csv", "[!a].csv", "~", "http:x.csv", "a=1.csv", "é.csv"]


def one_row(document="d", **others):
    table = long_table([("s", "q", document, 1, 0)])
    for name, value in others.items():
        table = table.append_column(name, [[value]])
    return table


def write(path, document="d", **others):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = one_row(document, **others)
    if path.name.endswith(".parquet"):
        pq.write_table(table, path)
    else:
        pyarrow.csv.write_csv(table, path)


def documents(path, **options):
    return read_log(path, **options).catalogue.doc_ids.tolist()


def test_a_name_is_that_of_one_file_whatever_characters_it_has(tmp_path, monkeypatch):
    for other in ("a1.csv", "ab.csv", "b.csv", "*.csv"):
        write(tmp_path / other, "other")
    paths = [tmp_path / (name if name.endswith(".csv") else f"{name}/log.csv") for name in ODD]
    for number, path in enumerate(paths):
        write(path, f"d{number:02}")
    together = documents(list(map(str, paths)), columns={"session_id": "doc_id"})
    assert together == [f"d{number:02}" for number in range(len(ODD))]
    for number in (0, 2, 3, 5, 7):
        assert documents(str(paths[number])) == [f"d{number:02}"]
    monkeypatch.chdir(tmp_path)
    assert documents("~/log.csv") == [f"d{ODD.index('~'):02}"]
    bytes_name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    os.link(tmp_path / "b.csv", bytes_name)
    assert documents(bytes_name) == ["other"]


def test_a_folder_with_odd_names_is_read_once(tmp_path):
    for number, name in enumerate(["a?.csv", "ab.csv", "d[1]/x.csv", "d1/x.csv", "e[/[e]*.csv"]):
        write(tmp_path / "logs" / name, f"d{number}")
    log = read_log(tmp_path / "logs", max_bad_share=1, columns={"session_id": "doc_id"})
    assert log.reading.rows == 5
    assert documents(tmp_path / "logs" / "d[1]", max_bad_share=1) == ["d2"]


def test_a_pattern_is_one_unless_it_is_the_name_of_a_file(tmp_path):
    write(tmp_path / "a1.csv", "one")
    assert documents(str(tmp_path / "a[1].csv")) == ["one"]
    assert documents(str(tmp_path / "a?.csv")) == ["one"]
    write(tmp_path / "a[1].csv", "itself")
    assert documents(str(tmp_path / "a[1].csv")) == ["itself"]
    write(tmp_path / "d1" / "x.csv", "elsewhere")
    write(tmp_path / "d[1]" / "x.csv", "here")
    assert documents(str(tmp_path / "d[1]" / "*.csv")) == ["here"]


def test_what_is_wrong_with_a_file_of_an_odd_name_is_said_of_that_name(tmp_path):
    path = tmp_path / "a[1].csv"
    path.write_text("session_id,query_id,doc_id,position,clicked\ns,q,d,1,0\ns,q,d,2\n")
    with pytest.raises(DataError) as caught:
        read_log(path)
    assert str(path) in str(caught.value)
    assert "dualrank-log-" not in str(caught.value)
    packed = tmp_path / "b*.csv.gz"
    packed.write_bytes(gzip.compress(b"session_id,query_id,doc_id,position,clicked\ns,q,d,1,0\n"))
    assert documents(packed) == ["d"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_folders_named_like_a_column_change_nothing_unless_they_are_asked_for(tmp_path, ending):
    folder = tmp_path / "logs"
    write(folder / "doc_id=5" / "device=phone%20x" / f"log.{ending}", "own")
    assert documents(folder) == ["own"]
    assert documents(folder / "doc_id=5" / "device=phone%20x" / f"log.{ending}") == ["own"]
    log = read_log(folder, contexts=["device"])
    assert log.column("device").names == ("phone x",)
    assert log.catalogue.doc_ids.tolist() == ["own"]
    assert read_log(folder, columns={"client_id": "device"}).reading.clients[0].name == "phone x"
    write(folder / "doc_id=5" / "device=phone%20x" / f"log.{ending}", "own", device="in the file")
    assert read_log(folder, contexts=["device"]).column("device").names == ("in the file",)


def test_a_folder_is_read_behind_links_and_every_file_once(tmp_path):
    write(tmp_path / "elsewhere" / "a.csv", "linked")
    folder = tmp_path / "logs"
    write(folder / "day" / "b.csv", "own")
    (folder / "further").symlink_to(tmp_path / "elsewhere")
    (folder / "latest").symlink_to(folder / "day")
    (folder / "day" / "up").symlink_to(folder)
    (folder / "itself").symlink_to(folder / "itself")
    (folder / "day" / "c.csv").symlink_to(folder / "day" / "b.csv")
    assert read_log(folder, columns={"session_id": "doc_id"}).reading.rows == 2
    (folder / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match=r"gone\.csv: a link to .*nowhere\.csv, which is not there"):
        read_log(folder)
    with pytest.raises(DataError, match=r"gone\.csv: a link to .*nowhere\.csv, which is not there"):
        read_log(folder / "gone.csv")


@pytest.mark.parametrize("scheme", ["http://", "https://", "s3://", "hf://", "file:///", "gcs://"])
def test_a_url_is_refused(scheme):
    with pytest.raises(DataError, match="opens files of this machine, and no URLs; download it"):
        read_log(f"{scheme}localhost/log.csv?part=*")


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (read_features, "features.parquet"),
        (read_features, "train.txt"),
        (lambda path: read_run(path, None), "run.csv"),
    ],
)
def test_a_url_is_no_features_and_no_run_either(read, name):
    sentence = f"https://localhost/{name}: dualrank opens files of this machine, and no URLs"
    with pytest.raises(DataError, match=sentence):
        read(Path(f"https://localhost/{name}"))


def test_what_does_not_end_is_no_log(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for endless in (tmp_path / "pipe.csv", "/dev/zero"):
        with pytest.raises(DataError, match="a log is a file, and this is none that ends"):
            read_log(endless)


def test_the_database_opens_the_named_files_and_nothing_else(tmp_path):
    write(tmp_path / "named.csv")
    write(tmp_path / "other.csv")
    with DuckDBEngine(files=[str(tmp_path / "named.csv")]) as engine:
        assert engine.rows(f"SELECT doc_id FROM '{tmp_path}/named.csv'") == [("d",)]
        for statement in (
            f"SELECT * FROM '{tmp_path}/other.csv'",
            f"SELECT * FROM read_text('{tmp_path}/*')",
            f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
            "SELECT * FROM 'http://localhost:9/x.csv'",
            f"ATTACH '{tmp_path}/new.db'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
            "SET memory_limit = '1TB'",
        ):
            with pytest.raises(Exception, match=r"(?i)disabled|locked|cannot|not allowed"):
                engine.rows(statement)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["named.csv", "other.csv"]


def test_temporary_files_have_a_place_or_a_sentence(tmp_path, monkeypatch):
    write(tmp_path / "a[1].csv")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(
        SettingsError, match=r"nowhere: no temporary files can be written .* TMPDIR"
    ):
        read_log(tmp_path / "a[1].csv")
    odd = tmp_path / "t[x]"
    odd.mkdir()
    monkeypatch.setenv("TMPDIR", str(odd))
    assert read_log(one_row()).sessions == 1
    with pytest.raises(SettingsError, match=r"t\[x\]: temporary files cannot lie in a folder with"):
        read_log(tmp_path / "a[1].csv")
    assert list(odd.iterdir()) == []


def test_a_line_without_end_takes_no_memory_here():
    lines = io.TextIOWrapper(io.BytesIO(b"session_id,x\n" + b"a" * 3_000_000))
    with pytest.raises(csv.Error, match="a line is too long"):
        list(_lines(lines))


def test_keys_without_number_are_refused(tmp_path):
    objects = [{f"k{line}_{key}": 1 for key in range(100)} for line in range(30)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, objects)))
    with pytest.raises(DataError, match="more than 2000 different keys; expected the names of col"):
        read_log(tmp_path / "log.jsonl")


def test_temporary_files_that_cannot_grow_end_in_a_sentence(tmp_path):
    """As on a full disk: no file may have more than some bytes."""
    code = """
import resource
from dualrank.data.log.duckdb_engine import DuckDBEngine
from dualrank.data.log.text_formats import _lines
from dualrank.errors import DataError
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
with DuckDBEngine("60MB", threads=1) as engine:
    try:
        engine.keep("big", "SELECT md5(CAST(range AS VARCHAR)) AS a FROM range(6000000)")
    except DataError as error:
        print(error)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert "the temporary files that the log needs cannot be written" in done.stdout, done
    assert done.stdout.startswith(f"{tmp_path}: ")
    assert list(tmp_path.iterdir()) == []


def test_more_files_than_may_be_open_are_named(tmp_path):
    for number in range(60):
        write(tmp_path / "logs" / f"{number}.parquet", f"d{number}")
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
from dualrank.data.log.read_log import read_log
from dualrank.errors import DataError
try:
    read_log({str(tmp_path / "logs")!r}, columns={{"session_id": "doc_id"}})
except DataError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "its 60 files are more than this process may have open at once" in done.stdout, done
