import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest

from dualrank.errors import DataError, SettingsError
from dualrank.pages import documents
from dualrank.pages.index import PageIndex, _Cut, _schema, _tantivy
from dualrank.pages.index_folder import next_directory
from dualrank.pages.sources import HeldPages
from dualrank.pages.tokens import Tokeniser

from ..waiting import wait_until

PAGES = HeldPages(
    [
        {"doc_id": "1", "url": "x.org/cats", "title": "Cats", "content": "about running cats"},
        {"doc_id": "2", "url": "x.org/dogs", "title": "Dogs", "content": "dogs run after cats"},
        {"doc_id": "3", "url": "x.org/sun", "title": "The Sun", "content": "shines"},
    ]
)


def found(index, query, **options):
    return [hit.doc_id for hit in index.search(query, **options)]


@pytest.fixture
def index(tmp_path):
    made = PageIndex.open_or_create(tmp_path / "index", Tokeniser())
    made.add(PAGES, jobs=1)
    return made


def test_the_best_page_comes_first(index):
    assert found(index, "cats") == ["1", "2"]
    assert found(index, "dogs cats", k=1) == ["2"]
    assert found(index, "cats", field="title") == ["1"]
    hit = index.search("sun")[0]
    assert (hit.url, hit.title) == ("x.org/sun", "The Sun")
    assert hit.score > 0


@pytest.mark.parametrize("query", ["", "?!", "elephant", 'title:"a AND (b'])
def test_a_query_that_matches_nothing_finds_nothing(index, query):
    assert found(index, query) == []


def test_an_index_is_opened_again_with_its_tokeniser(tmp_path):
    made = PageIndex.open_or_create(tmp_path / "i", Tokeniser("english", stop_words=True))
    made.add(PAGES, jobs=1)
    again = PageIndex.open(tmp_path / "i")
    assert again.tokeniser == Tokeniser("english", stop_words=True)
    assert sorted(found(again, "run")) == ["1", "2"]
    assert found(again, "the after") == []


def test_pages_are_added_and_replaced(index):
    new = [
        {"doc_id": "3", "title": "Moon", "content": "a cat on the moon"},
        {"doc_id": "4", "title": "Mars"},
        {"doc_id": "4", "title": "Venus"},
    ]
    result = index.add(HeldPages(new), jobs=1)
    assert (result.pages, result.in_index, result.repeated) == (2, 4, ("4",))
    assert found(index, "sun") == []
    assert found(index, "moon") == ["3"]
    assert found(index, "mars venus") == ["4"]
    assert found(PageIndex.open(index.path), "mars") == ["4"]


def test_unreadable_pages_are_named_and_change_nothing(index):
    result = index.add(HeldPages([{"title": "nobody"}, {"doc_id": "5", "title": "Pluto"}]), jobs=1)
    assert len(result.unreadable) == 1
    assert len(index) == 4
    with pytest.raises(DataError, match="none of the 1 pages could be read"):
        index.add(HeldPages([{"title": "nobody"}]), jobs=1)
    assert len(index) == 4


def test_what_is_no_index_is_refused(tmp_path, index):
    with pytest.raises(DataError, match="this is no index"):
        PageIndex.open(tmp_path)
    with pytest.raises(DataError, match="there is something else"):
        PageIndex.open_or_create(tmp_path, Tokeniser())
    with pytest.raises(SettingsError, match="cannot change now"):
        PageIndex.open_or_create(index.path, Tokeniser("english"))
    with pytest.raises(SettingsError, match="the field is one of"):
        index.search("x", field="body")
    (index.path / "dualrank.json").write_text("{}")
    with pytest.raises(DataError, match="damaged"):
        PageIndex.open(index.path)


def test_an_index_that_was_never_filled_is_not_there(tmp_path):
    made = PageIndex.open_or_create(tmp_path / "i", Tokeniser())
    assert (len(made), made.search("cats")) == (0, [])
    with pytest.raises(DataError, match="none of the 1 pages could be read"):
        made.add(HeldPages([{"title": "nobody"}]), jobs=1)
    assert list(tmp_path.iterdir()) == []


def test_what_failed_is_gone_though_a_thread_still_writes_there(tmp_path):
    """Tantivy looks after its files in a thread of its own, and locks them for it."""
    over = threading.Event()

    def lock(place):
        while not over.is_set():
            with suppress(FileNotFoundError):
                (place / ".tantivy-meta.lock").touch()

    def fail(folder):
        with next_directory(folder, Tokeniser()) as place:
            threading.Thread(target=lock, args=(place,), daemon=True).start()
            wait_until((place / ".tantivy-meta.lock").exists)
            raise RuntimeError("no page")

    for attempt in range(5):
        with pytest.raises(RuntimeError, match="no page"):
            fail(tmp_path / f"{attempt}")
    over.set()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_index_that_stood_there(tmp_path, index):
    """Files may not grow beyond some kilobytes, in a process of its own."""
    program = """
import resource, sys
from dualrank.errors import DataError
from dualrank.pages.index import PageIndex
from dualrank.pages.index_folder import next_directory
from dualrank.pages.sources import HeldPages
from dualrank.pages.tokens import Tokeniser
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
words = " ".join(f"w{i}" for i in range(5000))
for folder in sys.argv[1:]:
    try:
        made = PageIndex.open_or_create(folder, Tokeniser())
        made.add(HeldPages([{"doc_id": "1", "content": words}]), jobs=1)
    except DataError as error:
        print(error)
"""
    folders = [str(index.path), str(tmp_path / "new")]
    command = [sys.executable, "-c", program, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for folder, said in zip(folders, done.stdout.splitlines(), strict=True):
        assert f"{folder}: nothing was added, for the index cannot be written" in said
    assert found(PageIndex.open(index.path), "cats") == ["1", "2"]
    assert len([entry for entry in index.path.iterdir() if entry.is_dir()]) == 1
    assert not (tmp_path / "new").exists()


def test_what_a_killed_writer_left_is_no_hindrance(tmp_path, index):
    for folder in (index.path, tmp_path / "new"):
        (folder / "pages-0123456789ab").mkdir(parents=True)
        (folder / ".lock").touch()
        PageIndex.open_or_create(folder, Tokeniser()).add(PAGES, jobs=1)
        assert found(PageIndex.open(folder), "cats") == ["1", "2"]
        assert len([entry for entry in folder.iterdir() if entry.is_dir()]) == 1


def test_two_cannot_add_to_an_index_at_once(index):
    class Adding(HeldPages):
        def batches(self):
            index.add(PAGES, jobs=1)
            return super().batches()

    with pytest.raises(DataError, match="another process is adding pages to this index"):
        index.add(Adding(PAGES.rows), jobs=1)
    assert found(PageIndex.open(index.path), "cats") == ["1", "2"]


def test_an_open_index_goes_on_when_another_adds_to_it(index):
    other = PageIndex.open(index.path)
    index.add(HeldPages([{"doc_id": "4", "title": "four cats"}]), jobs=1)
    assert found(other, "cats") == ["1", "2"]
    assert len(PageIndex.open(index.path)) == 4


def copies_with_damage(folder, target, count):
    """Copies of an index, each with one file cut, stirred or gone; times as they were."""
    rng = np.random.default_rng(2)
    files = [file.relative_to(folder) for file in sorted(folder.rglob("*")) if file.is_file()]
    files = [file for file in files if (folder / file).stat().st_size]
    for _ in range(count):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)
        file = target / files[rng.integers(len(files))]
        about, content = file.stat(), bytearray(file.read_bytes())
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        file.write_bytes(content[: rng.integers(1, 2 * len(content))])
        os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
        yield target


def test_a_damaged_index_is_refused_before_it_is_searched(tmp_path, index):
    for copy in copies_with_damage(index.path, tmp_path / "copy", 60):
        with pytest.raises(DataError, match=r"the index is damaged|has format"):
            PageIndex.open(copy)


def test_an_index_can_be_copied(tmp_path, index):
    shutil.copytree(index.path, tmp_path / "copy")
    assert found(PageIndex.open(tmp_path / "copy"), "cats") == ["1", "2"]


def test_a_note_names_only_what_is_in_its_folder(tmp_path, index):
    note = index.path / "dualrank.json"
    held = json.loads(note.read_text())
    shutil.move(index.path / held["directory"], tmp_path / "pages-0123456789ab")
    for directory in ("..", "../pages-0123456789ab", str(tmp_path / "pages-0123456789ab"), "/", 7):
        note.write_text(json.dumps(held | {"directory": directory}))
        with pytest.raises(DataError, match="damaged"):
            PageIndex.open(index.path)
    note.write_text(json.dumps(held))
    (index.path / held["directory"]).symlink_to(tmp_path / "pages-0123456789ab")
    with pytest.raises(DataError, match="is a link"):
        PageIndex.open(index.path)


def test_links_and_pipes_among_the_files_are_not_followed(tmp_path, index):
    (file,) = index.path.glob("pages-*/*.store")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="is no regular file"):
        PageIndex.open(index.path)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DataError, match="is no regular file"):
        PageIndex.open(index.path)


@pytest.fixture
def first_format(tmp_path):
    """An index as it was written before notes vouched for files."""
    folder = tmp_path / "first"
    folder.mkdir()
    writer = _tantivy().Index(_schema(), str(folder)).writer(50 << 20, 1)
    for page in _Cut(Tokeniser())(next(PAGES.batches())):
        writer.add_document(_tantivy().Document(**page))
    writer.commit()
    writer.wait_merging_threads()
    tokeniser = {"stemmer": None, "stop_words": False, "chinese": False}
    (folder / "dualrank.json").write_text(json.dumps({"format": 1, "tokeniser": tokeniser}))
    return folder


def test_an_index_of_the_first_format_is_read_and_added_to(first_format):
    old = PageIndex.open(first_format)
    assert found(old, "cats") == ["1", "2"]
    old.add(HeldPages([{"doc_id": "1", "title": "one"}]), jobs=1)
    assert found(PageIndex.open(first_format), "cats") == ["2"]
    (directory,) = first_format.glob("pages-*")
    assert {entry.name for entry in first_format.iterdir()} == {
        ".lock",
        "dualrank.json",
        directory.name,
    }


def test_a_damaged_segment_of_the_first_format_is_refused(first_format):
    (file,) = first_format.glob("*.term")
    content = bytearray(file.read_bytes())
    content[10] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match="term is not as it was written"):
        PageIndex.open(first_format)


def test_a_source_of_little_but_bad_pages_is_refused(index, monkeypatch):
    monkeypatch.setattr(documents, "MOST_UNREADABLE", 3)
    bad = [{"title": "nobody"}] * 4
    with pytest.raises(DataError, match="4 pages cannot be read and 1 can"):
        index.add(HeldPages([*bad, {"doc_id": "9", "title": "nine"}]), jobs=1)
    assert len(PageIndex.open(index.path)) == 3


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ({"doc_id": "x" * 70_000, "title": "long"}, "its name has 70000 characters"),
        ({"doc_id": [1], "title": "a"}, "its doc_id must be text or a whole number"),
        ({"doc_id": True, "title": "a"}, "its doc_id must be text or a whole number"),
        ({"doc_id": "7", "url": {"a": 1}, "title": "a"}, "its url must be text"),
    ],
)
def test_names_that_no_index_can_hold_are_named(index, page, said):
    result = index.add(HeldPages([page, {"doc_id": "ok", "title": "a"}]), jobs=1)
    assert result.pages == 1
    assert said in result.unreadable[0].reason


def test_halves_of_characters_do_no_harm(index):
    half = "\ud800"
    result = index.add(
        HeldPages([{"doc_id": f"a{half}", "url": half, "title": f"{half} moon"}]), jobs=1
    )
    assert (result.pages, found(index, "moon")) == (1, ["a?"])
