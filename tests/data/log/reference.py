"""The rules of a log in plain Python, session by session: what the SQL is compared with."""

from collections import Counter, defaultdict

import numpy as np


def reduce_plainly(rows):
    """Of rows (session, query, document, position, clicked): what happened, and problems found."""
    sessions = defaultdict(list)
    problems = Counter()
    for session, *row in rows:
        if session is None:
            problems["no_session"] += 1
        else:
            sessions[session].append(tuple(row))
    happened = Counter()
    for content in sessions.values():
        kinds = flaws(content)
        problems.update(kinds)
        if kinds <= {"not_displayed", "repeated_row"}:
            shown = sorted({(p, d) for _, d, p, _ in content if p is not None})
            clicked = {p for _, _, p, click in content if p is not None and click == 1}
            query = content[0][0]
            documents = tuple(d for _, d in shown)
            happened[query, documents, tuple(p in clicked for p, _ in shown)] += 1
    return happened, problems


def flaws(content):
    """The kinds of problems in one session's rows."""
    found = set()
    whole = [p for _, _, p, _ in content if p is not None and p == int(p) and 1 <= p <= 1024]
    nowhere = [row for row in content if row[2] is None]
    if any(query is None or d is None or c is None for query, d, _, c in content):
        found.add("missing_value")
    if all(row[2] is None for row in content):
        found.add("missing_value")
    for row in nowhere:
        # A click on the same document elsewhere without a position makes it a click outside.
        same = [other for other in nowhere if other[:2] == row[:2]]
        clicked = any(other[3] == 1 for other in same)
        found.add("not_displayed" if clicked else "missing_value")
    if any(p == 0 for _, _, p, _ in content):
        found.add("zero_based")
    if len(whole) + len(nowhere) + sum(p == 0 for _, _, p, _ in content) < len(content):
        found.add("bad_position")
    if any(c not in (None, 0, 1) for *_, c in content):
        found.add("bad_click")
    if len({query for query, *_ in content} - {None}) > 1:
        found.add("several_queries")
    if max(Counter((q, d, p) for q, d, p, _ in content).values()) > 1:
        found.add("repeated_row")
    placed = {(query, d, p) for query, d, p, _ in content if p in whole}
    if "several_queries" not in found:
        if len(placed) > len({p for _, _, p in placed}):
            found.add("same_position")
        if "missing_value" not in found and len(placed) > len({d for _, d, _ in placed}):
            found.add("same_document")
        unread = {"bad_position", "zero_based", "missing_value", "same_position"}
        if placed and not found & unread and max(whole) > len(set(whole)):
            found.add("gap")
    return found


def happenings(log):
    """What a click log says happened: (query, documents, clicks) with sessions."""
    names = log.catalogue
    found = Counter()
    for number, clicks, count in zip(log.list_of, log.clicks, log.counts, strict=True):
        documents = log.lists.documents[number]
        shown = documents >= 0
        query = str(names.query_ids[log.lists.queries[number]])
        assert (names.query_of_document[documents[shown]] == log.lists.queries[number]).all()
        key = query, tuple(map(str, names.doc_ids[documents[shown]])), tuple(clicks[shown].tolist())
        assert not clicks[~shown].any()
        found[key] += int(count)
    assert len(np.unique(log.lists.documents, axis=0)) == len(log.lists)
    return found
