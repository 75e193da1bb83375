import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrank.data.dataset import Dataset
from dualrank.errors import DataError, SettingsError
from dualrank.evaluation.evaluator import Evaluator, evaluate, evaluate_per_query

ALL_METRICS = [
    *(name for name in ("map", "ndcg", "err", "dcg", "mrr")),
    *(f"{n}@{k}" for n in ("map", "ndcg", "err", "dcg", "mrr", "precision") for k in (1, 3, 10)),
]


def graded(*queries, max_grade=None):
    lengths = [len(query) for query in queries]
    return Dataset.from_arrays(
        np.zeros((sum(lengths), 1)),
        qid=np.repeat(np.arange(len(queries)), lengths),
        grades=np.concatenate(queries),
        max_grade=max_grade,
    )


def random_set(rng, queries, *, longest=40, share_without_relevant=0.2):
    lengths = rng.integers(1, longest + 1, queries)
    return graded(
        *(
            rng.integers(0, 5, n) * (rng.random() >= share_without_relevant)
            for n in lengths.tolist()
        ),
        max_grade=4,
    )


def slow_metric(name, grades, cutoff, max_grade):
    """A metric of one query's grades in ranked order, written as in the textbook."""
    k = min(len(grades), cutoff)
    relevant = [y >= 1 for y in grades]

    def dcg(ys):
        return sum((2**y - 1) / math.log2(r + 2) for r, y in enumerate(ys[:k]))

    if name == "dcg":
        return dcg(grades)
    if name == "ndcg":
        ideal = dcg(sorted(grades, reverse=True))
        return dcg(grades) / ideal if ideal else 0.0
    if name == "err":
        stop = [(2**y - 1) / 2**max_grade for y in grades]
        return sum(stop[r] / (r + 1) * math.prod(1 - stop[j] for j in range(r)) for r in range(k))
    if name == "map":
        hits = [sum(relevant[: r + 1]) / (r + 1) for r in range(k) if relevant[r]]
        return sum(hits) / sum(relevant) if any(relevant) else 0.0
    if name == "mrr":
        return next((1 / (r + 1) for r in range(k) if relevant[r]), 0.0)
    return sum(relevant[:k]) / cutoff


def test_metrics_agree_with_slow_ones_on_rankings_with_ties():
    rng = np.random.default_rng(1)
    data = random_set(rng, 300, longest=100)
    scores = rng.integers(0, 10, data.document_count) / 10
    values = evaluate_per_query(scores, data, ALL_METRICS)
    for q in range(len(data)):
        rows = slice(data.offsets[q], data.offsets[q + 1])
        # Python's sort is stable, so ties keep the order of the input.
        order = sorted(range(data.lengths[q]), key=lambda i, s=scores[rows]: -s[i])
        grades = data.grades[rows][order].tolist()
        for key in ALL_METRICS:
            name, _, cutoff = key.partition("@")
            expected = slow_metric(name, grades, int(cutoff or 10**6), 4)
            assert values[key][q] == pytest.approx(expected, abs=1e-9), (key, q)


def test_values_by_hand():
    data = graded([1, 0, 2], [0, 1])
    values = evaluate_per_query([3.0, 2.0, 1.0, 2.0, 1.0], data, ALL_METRICS)
    ideal = 3 + 1 / math.log2(3)
    assert values["dcg"] == pytest.approx([1 + 3 / 2, 1 / math.log2(3)])
    assert values["ndcg"] == pytest.approx([2.5 / ideal, 1 / math.log2(3)])
    assert values["ndcg@1"] == pytest.approx([1 / 3, 0])
    assert values["err"] == pytest.approx([1 / 4 + 3 / 4 * 3 / 4 / 3, 1 / 4 / 2])
    assert values["map"] == pytest.approx([(1 + 2 / 3) / 2, 1 / 2])
    assert values["map@1"] == pytest.approx([1 / 2, 0])
    assert values["mrr"] == pytest.approx([1, 1 / 2])
    assert values["precision@3"] == pytest.approx([2 / 3, 1 / 3])


def test_the_ideal_counts_documents_below_the_cutoff():
    assert evaluate([2.0, 1.0], graded([0, 3]), "ndcg@1") == {"ndcg@1": 0.0}


def test_err_is_relative_to_the_highest_grade_of_the_data_set_not_of_the_query():
    data = graded([1], [4])
    assert evaluate_per_query([0.0, 0.0], data, "err")["err"].tolist() == [1 / 16, 15 / 16]
    first = data.take([0])
    assert evaluate([0.0], first, "err")["err"] == 1 / 16


def test_ties_keep_the_order_of_the_input():
    data = graded([0, 1, 0], [1, 0, 0])
    assert evaluate_per_query(np.zeros(6), data, "mrr")["mrr"].tolist() == [1 / 2, 1]


def test_a_single_document_is_ranked_first():
    values = evaluate([-7.0], graded([2]), ["ndcg@10", "map", "mrr", "err@5", "precision@1"])
    assert values == {"ndcg@10": 1, "map": 1, "mrr": 1, "err@5": 3 / 4, "precision@1": 1}


def test_precision_does_not_excuse_short_lists():
    assert evaluate([1.0, 0.0], graded([1, 1]), "precision@10") == {"precision@10": 0.2}


def test_the_mean_is_over_queries_not_documents():
    assert evaluate(np.zeros(4), graded([1], [0, 0, 1]), "mrr")["mrr"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(("policy", "value"), [("zero", 0.0), ("one", 1.0), ("skip", np.nan)])
def test_queries_without_a_relevant_document_follow_one_policy_in_every_metric(policy, value):
    data = graded([0, 0], [1, 0])
    ranked = evaluate_per_query([1.0, 0.0, 1.0, 0.0], data, ALL_METRICS, no_relevant=policy)
    means = evaluate([1.0, 0.0, 1.0, 0.0], data, ALL_METRICS, no_relevant=policy)
    for key in ALL_METRICS:
        assert np.array_equal(ranked[key][0], value, equal_nan=True)
        kept = ranked[key][1:] if policy == "skip" else ranked[key]
        assert means[key] == kept.mean()


def test_without_any_relevant_document_nothing_can_be_skipped():
    data = graded([0, 0], [0])
    assert evaluate(np.zeros(3), data, "ndcg@3") == {"ndcg@3": 0.0}
    with pytest.raises(DataError) as error:
        evaluate(np.zeros(3), data, no_relevant="skip")
    assert str(error.value) == (
        "no query has a relevant document, so no_relevant='skip' leaves none to evaluate"
    )


def test_grades_between_0_and_1_have_gain_but_are_not_relevant():
    values = evaluate([1.0, 0.0], graded([0.5, 0]), ["ndcg@1", "map"])
    assert values == {"ndcg@1": 1.0, "map": 0.0}


def test_an_evaluator_repeats_what_evaluate_says_and_keeps_nothing():
    rng = np.random.default_rng(2)
    data = random_set(rng, 50)
    evaluator = Evaluator(data, ALL_METRICS)
    for _ in range(3):
        scores = rng.normal(size=data.document_count)
        before = scores.copy()
        assert evaluator(scores) == evaluate(scores, data, ALL_METRICS)
        assert np.array_equal(scores, before)


def test_read_only_memory_mapped_and_float32_inputs_are_welcome(tmp_path):
    data = graded([0, 1, 2])
    np.save(tmp_path / "grades.npy", data.grades)
    np.save(tmp_path / "offsets.npy", data.offsets)
    mapped = replace(
        data,
        grades=np.load(tmp_path / "grades.npy", mmap_mode="r"),
        offsets=np.load(tmp_path / "offsets.npy", mmap_mode="r"),
    )
    scores = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    scores.flags.writeable = False
    assert evaluate(scores, mapped, "ndcg") == {"ndcg": 1.0}


queries = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=50), min_size=1, max_size=6)


@settings(deadline=None, max_examples=50)
@given(
    queries=queries,
    seed=st.integers(0, 1000),
    scale=st.sampled_from([2.0**-20, 0.5, 2.0, 2.0**20]),
    shift=st.integers(-1000, 1000),
)
def test_shifted_and_scaled_scores_change_nothing(queries, seed, scale, shift):
    data = graded(*queries, max_grade=4)
    # Whole numbers and powers of two, so that arithmetic neither makes nor breaks a tie.
    scores = np.random.default_rng(seed).integers(-50, 50, data.document_count).astype(float)
    expected = evaluate_per_query(scores, data, ALL_METRICS)
    moved = evaluate_per_query(scores * scale + shift, data, ALL_METRICS)
    for key in ALL_METRICS:
        assert np.array_equal(moved[key], expected[key])


@settings(deadline=None, max_examples=50)
@given(queries=queries, seed=st.integers(0, 1000))
def test_the_order_of_documents_and_queries_in_the_input_changes_nothing(queries, seed):
    rng = np.random.default_rng(seed)
    data = graded(*queries, max_grade=4)
    scores = rng.permutation(data.document_count).astype(float)
    expected = evaluate_per_query(scores, data, ALL_METRICS)

    order = rng.permutation(len(queries))
    shuffled, moved = [], []
    for q in order:
        inside = rng.permutation(len(queries[q]))
        shuffled.append(np.asarray(queries[q])[inside])
        moved.append(scores[data.offsets[q] : data.offsets[q + 1]][inside])
    values = evaluate_per_query(np.concatenate(moved), graded(*shuffled, max_grade=4), ALL_METRICS)
    for key in ALL_METRICS:
        assert np.array_equal(values[key], expected[key][order])


@settings(deadline=None, max_examples=50)
@given(queries=queries, seed=st.integers(0, 1000))
def test_the_grades_themselves_are_the_best_scores(queries, seed):
    data = graded(*queries, max_grade=4)
    best = evaluate_per_query(data.grades, data, ALL_METRICS)
    other = evaluate_per_query(
        np.random.default_rng(seed).normal(size=data.document_count), data, ALL_METRICS
    )
    for key in ALL_METRICS:
        assert (other[key] <= best[key] + 1e-12).all()
        assert np.isfinite(other[key]).all()
    has_relevant = [max(query) >= 1 for query in queries]
    assert (best["ndcg@10"] == has_relevant).all()
    assert (best["map"] == has_relevant).all()


def test_skewed_lengths_cost_no_padding():
    # Padded to the longest query these would be 2,000,000,000 cells.
    lengths = np.r_[100_000, np.ones(20_000, int)]
    data = Dataset.from_arrays(
        np.zeros((lengths.sum(), 1)),
        qid=np.repeat(np.arange(len(lengths)), lengths),
        grades=np.ones(lengths.sum()),
    )
    assert evaluate(np.zeros(lengths.sum()), data, "ndcg@10") == {"ndcg@10": 1.0}


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, 2.0], "scores has shape (2,), but there are 3 documents"),
        ([[1.0], [2.0], [3.0]], "scores has shape (3, 1), but there are 3 documents"),
        ([0.0, 1.0, np.nan], "row 2 of scores (query '1') is nan"),
        (["a", "b", "c"], "scores must be one number per document"),
    ],
)
def test_bad_scores_are_named(scores, message):
    with pytest.raises(DataError) as error:
        evaluate(scores, graded([0, 1], [1]), "map")
    assert str(error.value) == message


def test_a_data_set_without_grades_cannot_be_evaluated():
    with pytest.raises(DataError) as error:
        Evaluator(Dataset.from_arrays([[0.0]], qid=[1]))
    assert str(error.value) == "this data set has no grades; they are needed here"


def test_grades_whose_gain_overflows_are_refused():
    with pytest.raises(DataError) as error:
        Evaluator(graded([0, 2000]))
    assert str(error.value) == (
        "grades go up to 2000; metrics with gain 2^y − 1 allow at most 1000"
    )


def test_an_unknown_policy_is_named():
    with pytest.raises(SettingsError) as error:
        Evaluator(graded([1]), no_relevant="ignore")
    assert str(error.value) == "no_relevant is 'ignore'; it must be 'zero', 'skip' or 'one'"


def test_queries_on_which_all_rankings_are_alike_are_counted():
    data = Dataset.from_arrays([[0.0]] * 5, qid=[1, 1, 2, 3, 4], grades=[0, 2, 0, 1, 1])
    assert Evaluator(data, "map").account() == [
        "1 query without a relevant document counted as 0",
        "2 queries with one document, which is always first",
    ]
    assert "left out" in Evaluator(data, "map", no_relevant="skip").account()[0]
    judged = Dataset.from_arrays([[0.0]] * 2, qid=[1, 1], grades=[0, 2])
    assert Evaluator(judged, "map").account() == []
