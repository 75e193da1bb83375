import pytest

from dualrank.errors import DataError, SettingsError
from dualrank.pages.index import PageIndex
from dualrank.pages.sources import HeldPages
from dualrank.pages.tokens import Tokeniser

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
