"""Features that tell the position or number the rows are named; others are let pass."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.diagnostics.diagnosis import POINTS
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.leakage import Leakage, leakage, warn_of_leakage

QUERIES, DOCUMENTS = 120, 12


@pytest.fixture(scope="module")
def world():
    """Documents that a linear logging ranker has ordered, its score, and a log of them."""
    rng = np.random.default_rng(3)
    rows = QUERIES * DOCUMENTS
    x = rng.normal(size=(rows, 5)).astype(np.float32)
    counts = rng.integers(0, 30, (rows, 1))
    score = x @ [1.0, 0.6, 0.4, 0.2, 0.1]
    dataset = Dataset.from_arrays(
        np.hstack([x, counts]),
        np.repeat(np.arange(QUERIES), DOCUMENTS),
        rng.integers(0, 3, rows),
        doc_ids=np.tile(np.arange(DOCUMENTS), QUERIES),
        feature_names=["a", "b", "c", "d", "e", "count"],
    )
    return dataset, score, sample_log(dataset, top_lists(dataset, score), PositionBasedUser(), 5000)


def with_feature(dataset, name, values):
    return replace(
        dataset,
        features=np.column_stack([dataset.features, values]).astype(np.float32),
        feature_names=(*dataset.feature_names, name),
    )


def places(dataset, score):
    """Rows numbered in the order in which each query's documents were displayed."""
    order = np.lexsort((-score, dataset.query_of_document))
    numbers = np.empty(len(order))
    numbers[order] = np.arange(len(order))
    return numbers


def test_ordinary_features_are_let_pass(world):
    dataset, _, log = world
    point = leakage(LogFacts(log, dataset))
    assert point.status == "good"
    assert leakage in POINTS


def test_the_score_of_the_logging_ranker_is_named_as_what_it_may_be(world):
    dataset, score, log = world
    point = leakage(LogFacts(log, with_feature(dataset, "old_score", score)))
    assert point.status == "warning"
    assert point.meaning.startswith("Feature 'old_score' orders 100% of neighbours as they were")
    assert "the score of the ranker that made the log is a good feature" in point.meaning
    assert "a position or row number is not there when documents are ranked" in point.meaning
    assert point.numbers["order_displayed"] == {"feature 'old_score'": pytest.approx(1.0)}
    assert not point.numbers["row_numbers"]
    assert not point.numbers["ids"]


@pytest.mark.parametrize("make", [lambda n: n, lambda n: 1 / (1 + n % DOCUMENTS), lambda n: -n])
def test_a_position_is_found_however_it_is_written(world, make):
    dataset, score, log = world
    found = Leakage.of(log, with_feature(dataset, "leak", make(places(dataset, score))))
    assert list(found.telling) == [6]


def test_row_numbers_ids_and_hashes_are_found_without_the_log(world):
    dataset, _, log = world
    rng = np.random.default_rng(0)
    rows = dataset.document_count
    numbered = {
        "rows kept": np.sort(rng.permutation(5 * rows)[:rows]),
        "a permutation": rng.permutation(rows),
    }
    for name, values in numbered.items():
        assert Leakage.of(log, with_feature(dataset, name, values)).numbering == (6,), name
    known = {
        "id": rng.permutation(50 * rows)[:rows],
        "hash": rng.integers(0, 2**62, rows).astype(float),
    }
    for name, values in known.items():
        assert Leakage.of(log, with_feature(dataset, name, values)).ids == (6,), name


def test_an_id_of_documents_that_several_queries_have_is_found(world):
    _, _, log = world
    rng = np.random.default_rng(0)
    documents = np.concatenate([rng.permutation(1500)[:15] for _ in range(400)])
    documents = np.concatenate([documents, np.arange(1500)])
    queries = np.concatenate([np.repeat(np.arange(400), 15), np.full(1500, 400)])
    values = (rng.permutation(90_000)[:1500])[documents]
    features = np.column_stack([rng.normal(size=len(documents)), values])
    dataset = Dataset.from_arrays(features, queries, doc_ids=documents)
    assert Leakage.of(log, dataset).ids == (1,)


def test_amounts_of_few_documents_and_values_missing_here_and_there_are_no_ids(world):
    dataset, _, log = world
    rng = np.random.default_rng(0)
    few = dataset.take(np.arange(20))
    short = log.take_lists(np.flatnonzero(log.lists.queries < 20))
    lengths = rng.permutation(90_000)[: few.document_count]
    assert not Leakage.of(short, with_feature(few, "length", lengths)).sentences
    ages = np.where(rng.random(dataset.document_count) < 0.1, np.nan, rng.integers(0, 99))
    assert not Leakage.of(log, with_feature(dataset, "age", ages)).sentences


def test_the_warning_names_features_and_file(world, caplog):
    dataset, score, log = world
    leaking = replace(with_feature(dataset, "row", places(dataset, score)), source="f.parquet")
    with caplog.at_level(logging.WARNING):
        warn_of_leakage(log, dataset)
        assert not caplog.records
        warn_of_leakage(log, leaking)
    assert [record.getMessage()[:30] for record in caplog.records] == [
        "f.parquet: feature 'row' order",
        "f.parquet: feature 'row' numbe",
    ]
