import numpy as np

from dualrank.pages.candidates import extract
from dualrank.pages.small_web import MAX_GRADE, WebSize, generate_web

SIZE = WebSize(pages=400, queries=40, topics=6, subtopics=4)


def test_a_seed_gives_the_same_web_again():
    one, two, other = generate_web(SIZE, 1), generate_web(SIZE, 1), generate_web(SIZE, 2)
    assert one.pages.rows == two.pages.rows
    assert one.queries.texts == two.queries.texts
    assert one.queries.texts != other.queries.texts


def test_pages_are_real_html_with_boilerplate_and_links():
    web = generate_web(SIZE)
    (batch, *_) = web.pages.batches()
    page = next(iter(batch.read()))
    html = web.pages.rows[0]["html"]
    assert page.fields.title
    assert page.fields.content
    assert page.fields.surroundings.count(" ") >= 5
    assert "<script>" in html
    assert "<a href=" in html
    assert "var page" not in page.fields.content
    assert len({row["url"] for row in web.pages.rows}) > 0.9 * SIZE.pages


def test_grades_go_from_0_to_4_and_good_articles_on_the_subtopic_have_the_highest():
    web = generate_web(SIZE)
    queries, pages = np.divmod(np.arange(40 * 400), 400)
    grades = web.grades(queries, pages)
    assert set(grades.tolist()) == set(range(MAX_GRADE + 1))
    same = (web.page_topic[pages] == web.query_topic[queries]) & (
        web.page_subtopic[pages] == web.query_subtopic[queries]
    )
    assert grades[same].mean() > grades[~same].mean() + 1
    assert (grades[web.page_topic[pages] != web.query_topic[queries]] == 0).all()


def test_search_finds_relevant_pages_but_not_in_the_best_order():
    web = generate_web(SIZE)
    found = extract(web.pages, web.queries, 20, jobs=1)
    names = [int(name.removeprefix("page")) for name in found.pages.doc_ids.tolist()]
    pairs = found.candidates
    grades = web.grades(pairs.queries, np.array(names)[pairs.documents])
    first = grades[np.flatnonzero(np.diff(pairs.queries, prepend=-1))]
    assert grades.mean() > 0.3
    assert 0.5 < first.mean() < 3.5
