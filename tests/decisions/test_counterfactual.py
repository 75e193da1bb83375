"""What a new ranker would earn, against truths that are known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import dualrank as dr
from dualrank.clicks import make_user
from dualrank.data import Dataset, RankedLists
from dualrank.data.click_log import Column
from dualrank.decisions import estimate, verdict_of
from dualrank.decisions.click_metrics import first_click
from dualrank.errors import DataError, SettingsError
from dualrank.learning import estimate_by_dual_learning
from dualrank.settings import TrainingSettings

DEPTH = 5
CURVE = dr.Propensity.of(dr.PositionBasedUser().examination(DEPTH))


def world(queries: int, seed: int = 0) -> Dataset:
    """Five documents a query, whose grade is told by two features and luck."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((queries * DEPTH, 3)).astype(np.float32)
    latent = features[:, 0] + features[:, 1] + 0.7 * rng.standard_normal(len(features))
    grades = np.digitize(latent, [0.0, 1.0, 2.0, 3.0])
    ids = np.repeat(np.arange(queries), DEPTH)
    names = np.arange(len(ids)).astype(str)
    return Dataset.from_arrays(features, ids, grades, doc_ids=names, max_grade=4)


def logged_lists(data: Dataset, orders: int = 2) -> RankedLists:
    """By the first feature, and with noise."""
    rng = np.random.default_rng(5)
    lists = [
        dr.top_lists(data, data.features[:, 0] + noise * rng.standard_normal(data.document_count))
        for noise in np.arange(orders)
    ]
    return RankedLists(
        np.concatenate([each.documents[:, :DEPTH] for each in lists]),
        np.concatenate([each.queries for each in lists]),
    )


def true_clicks(data: Dataset, lists: RankedLists, user: object = None) -> float:
    user = user or dr.PositionBasedUser()
    lists = RankedLists(lists.documents[:, :DEPTH], lists.queries)
    pages = user.browse(lists.gather(data.require_grades()), lists.mask, data.max_grade)
    return float(pages.marginal().sum(axis=1).mean())


@pytest.fixture(scope="module")
def data() -> Dataset:
    return world(800)


@pytest.fixture(scope="module")
def log(data: Dataset) -> dr.ClickLog:
    return dr.sample_log(data, logged_lists(data), dr.PositionBasedUser(), 60_000, seed=1)


@pytest.fixture(scope="module")
def found(log: dr.ClickLog, data: Dataset):
    good = data.features[:, 0] + data.features[:, 1]
    return estimate(log, good, data, propensity=CURVE, resamples=200)


def test_every_estimator_is_near_the_truth_where_its_assumptions_hold(found, data, log) -> None:
    good = data.features[:, 0] + data.features[:, 1]
    truth = true_clicks(data, dr.top_lists(data, good)) - true_clicks(data, log.lists)
    assert not found.clicks_depend
    for name in ("direct", "ips", "self-normalised", "clipped", "doubly-robust"):
        each = found["clicks", name]
        # Truth is over these very queries, which intervals over queries are wider than.
        assert abs(each.difference - truth) < (each.high - each.low) / 2, name
        assert each.low < each.difference < each.high


def test_what_was_logged_earns_what_was_clicked(found, log) -> None:
    clicks = log.clicks_per_list.sum() / log.sessions
    assert found["clicks", "ips"].old == pytest.approx(clicks, rel=1e-9)
    ranks = 1 / np.log2(np.arange(DEPTH) + 2)
    dcg = (log.clicks_per_list @ ranks).sum() / log.sessions
    # A pair that was shown at two ranks is as relevant at both: clicks there are pooled.
    assert found["dcg", "ips"].old == pytest.approx(dcg, rel=5e-3)
    top = log.clicks_per_list[:, 0].sum() / log.sessions
    assert found["precision@1", "ips"].old == pytest.approx(top, rel=2e-2)


def test_the_first_click_of_the_logged_lists_is_where_it_was(found, log) -> None:
    first = np.where(log.clicks.any(axis=1), 1 / (log.clicks.argmax(axis=1) + 1), 0.0)
    observed = float((log.counts * first).sum() / log.sessions)
    assert found["first-click", "ips"].old == pytest.approx(observed, abs=0.005)
    assert found["first-click"].old == pytest.approx(observed, abs=0.01)


def test_first_click_has_the_slope_of_finite_differences() -> None:
    p = np.random.default_rng(0).random((3, 4))
    value, slopes = first_click(p)
    for k in range(4):
        moved = p.copy()
        moved[:, k] += 1e-6
        assert (first_click(moved)[0] - value) / 1e-6 == pytest.approx(slopes[:, k], abs=1e-5)


def test_a_ranking_is_no_better_than_itself(log, data) -> None:
    scores = data.features[:, 0].astype(float)
    same = estimate(log, scores, data, against=2 * scores + 1, propensity=CURVE, resamples=50)
    for each in same.estimates:
        assert each.difference == pytest.approx(0, abs=1e-9)
    assert verdict_of(same).decision == "cannot tell"
    assert "no log would tell them apart" in " ".join(verdict_of(same).sentences)


def test_the_order_that_was_logged_is_no_better_whatever_places_were_filled(data) -> None:
    scores = data.features[:, 0].astype(float)
    full = dr.top_lists(data, scores, DEPTH).documents
    short = np.where(np.arange(DEPTH) < 2, full, -1)
    gaps = np.full_like(full, -1)
    gaps[:, [0, 2, 4]] = full[:, :3]
    queries = np.tile(np.arange(len(data), dtype=np.int32), 3)
    lists = RankedLists(np.concatenate([full, short, gaps]), queries)
    log = dr.sample_log(data, lists, dr.PositionBasedUser(), 20_000, seed=2)
    same = estimate(log, scores, data, propensity=CURVE, resamples=20)
    for each in same.estimates:
        assert each.difference == pytest.approx(0, abs=1e-9), each


def test_what_a_run_leaves_out_is_not_shown_and_said(log, data) -> None:
    scores = data.features[:, 0].astype(float)
    best = dr.top_lists(data, scores, 2).documents
    short = np.full(data.document_count, -np.inf)
    short[best] = scores[best]
    found = estimate(log, short, data, against=scores, propensity=CURVE, resamples=20)
    assert found["clicks"].new < found["clicks"].old
    assert found["precision@1"].difference == pytest.approx(0, abs=1e-9)
    assert any("100% of sessions: it is taken to show no more" in each for each in found.notes)

    half = np.where(data.query_of_document % 2, -np.inf, scores)
    found = estimate(log, half, data, against=scores, propensity=CURVE, resamples=20)
    assert found["clicks"].difference == pytest.approx(0, abs=1e-9)
    assert found.queries == 400
    assert any("ranks 400 of 800 queries" in each for each in found.notes)


def test_turning_the_comparison_around_turns_the_sign(log, data) -> None:
    one, other = data.features[:, 0] + data.features[:, 1], -data.features[:, 0]
    there = estimate(log, one, data, against=other, propensity=CURVE, resamples=50)
    back = estimate(log, other, data, against=one, propensity=CURVE, resamples=50)
    for name in ("ips", "clipped", "direct", "doubly-robust"):
        assert there["clicks", name].difference == pytest.approx(
            -back["clicks", name].difference, abs=2e-3
        )
    assert verdict_of(there).decision == "better"
    assert verdict_of(back).decision == "worse"


@pytest.mark.slow
def test_intervals_cover_the_truth_of_other_queries() -> None:
    """Over logs of other queries of one world, with a wrong model of relevance in sight."""
    population = world(20_000, seed=9)
    good = population.features[:, 0] + population.features[:, 1]
    truth = true_clicks(population, dr.top_lists(population, good)) - true_clicks(
        population, dr.top_lists(population, population.features[:, 0])
    )
    covered = {"ips": 0, "doubly-robust": 0}
    squares = {"ips": 0.0, "doubly-robust": 0.0}
    runs = 24
    for seed in range(runs):
        data = world(400, seed=100 + seed)
        lists = dr.top_lists(data, data.features[:, 0], DEPTH)
        log = dr.sample_log(data, lists, dr.PositionBasedUser(), 2_000, seed=seed)
        found = estimate(
            log, data.features[:, :2].sum(axis=1), data, propensity=CURVE, resamples=100
        )
        for name in covered:
            each = found["clicks", name]
            covered[name] += each.low <= truth <= each.high
            squares[name] += (each.difference - truth) ** 2
    # 24 tosses at 95%: fewer than 19 hits have a chance of one in a thousand.
    assert min(covered.values()) >= 19
    assert squares["doubly-robust"] < squares["ips"]


def test_a_new_ranking_of_unseen_documents_is_refused_in_a_sentence(log, data) -> None:
    shown = RankedLists(log.lists.documents[:, :2], log.lists.queries)
    short = dr.sample_log(data, shown, dr.PositionBasedUser(), 5_000, seed=2)
    worst_first = -data.features[:, 0]
    found = estimate(short, worst_first, data, propensity=CURVE, resamples=50)
    assert set(found.refused) == {"ips", "self-normalised", "clipped", "affine"}
    assert found.support.missing > 0.1
    verdict = verdict_of(found)
    assert verdict.decision == "cannot tell"
    assert "was never displayed" in verdict.sentences[0]
    with pytest.raises(KeyError):
        found["clicks", "ips"]
    reranked = estimate(
        short, worst_first, data, propensity=CURVE, only_displayed=True, resamples=50
    )
    assert reranked.support.missing == 0
    assert not reranked.refused


def test_a_wrong_curve_is_contradicted(log, data) -> None:
    wrong = dr.Propensity.of(CURVE.examination**0.3)
    noisy = logged_lists(data)
    noisy = RankedLists(noisy.documents[len(data) :], noisy.queries[len(data) :])
    still = dr.sample_log(data, noisy, dr.PositionBasedUser(), 60_000, seed=1)
    wronger = dr.Propensity.of(CURVE.examination**0.1)
    good = data.features[:, :2].sum(axis=1)
    found = estimate(log, good, data, propensity=wrong, resamples=50)
    assert found.contradicted[0].witness.startswith("documents shown")
    assert verdict_of(found).decision == "cannot tell"
    assert "the curve" in verdict_of(found).sentences[0]
    # Where no document moved, features are the only witness.
    by_features = estimate(still, good, data, propensity=wronger, resamples=50)
    assert [each.witness for each in by_features.contradicted] == ["features"]
    right = estimate(log, good, data, propensity=CURVE, resamples=50)
    assert not right.contradicted


def test_a_harvested_curve_widens_the_intervals(log, data) -> None:
    good = data.features[:, :2].sum(axis=1)
    known = estimate(log, good, data, propensity=CURVE, resamples=100)
    harvested = estimate(log, good, data, propensity="harvested", resamples=100)
    assert harvested.curve_is_counted
    assert not known.curve_is_counted

    def width(each: dr.decisions.Counterfactual) -> float:
        return each["clicks", "ips"].high - each["clicks", "ips"].low

    assert width(harvested) > width(known)
    assert estimate(log, good, data, resamples=50).curve_source == "harvested"


def test_trusting_users_bring_the_affine_estimate(data) -> None:
    user = make_user("pbm-trust")
    log = dr.sample_log(data, logged_lists(data), user, 200_000, seed=3)
    good = data.features[:, :2].sum(axis=1)
    found = estimate(log, good, data, propensity=CURVE, resamples=50)
    truth = true_clicks(data, dr.top_lists(data, good), user) - true_clicks(data, log.lists, user)
    affine, plain = found["clicks", "affine"], found["clicks", "ips"]
    assert abs(affine.difference - truth) < abs(plain.difference - truth)
    harvested = estimate(log, good, data, propensity="harvested", resamples=50)
    # By position alone the better ranking seems to earn more, which it does not of these users.
    assert truth < 0 < harvested["clicks"].low
    assert not harvested.contradicted
    assert verdict_of(harvested).decision == "cannot tell"


def test_users_who_stop_after_a_click_leave_nothing_to_tell(data) -> None:
    log = dr.sample_log(data, logged_lists(data), make_user("cascade"), 60_000, seed=3)
    found = estimate(log, data.features[:, 1], data, resamples=50)
    assert found.clicks_depend
    assert verdict_of(found).decision == "cannot tell"
    assert "stop after a click" in verdict_of(found).sentences[0]


def test_weights_of_events_are_what_is_earned(log, data) -> None:
    bought = log.clicks * log.counts[:, None] * 1.0
    with_events = replace(log, events={"purchase": bought})
    good = data.features[:, :2].sum(axis=1)
    plain = estimate(log, good, data, propensity=CURVE, resamples=50)
    valued = estimate(
        with_events, good, data, propensity=CURVE, events={"purchase": 2}, resamples=50
    )
    assert valued["clicks", "ips"].difference == pytest.approx(
        3 * plain["clicks", "ips"].difference, rel=1e-9
    )
    with pytest.raises(KeyError):
        valued["first-click"]
    said = verdict_of(valued).sentences
    assert "value per session" in said[0]
    assert "by what click, purchase are worth" in said[-1]


def test_events_that_never_happened_are_refused(log, data) -> None:
    nothing = replace(log, events={"purchase": np.zeros(log.clicks.shape)})
    weights = {"click": 0, "purchase": 5}
    with pytest.raises(DataError, match=r"events \(purchase\) on 0 queries to judge by"):
        estimate(nothing, data.features[:, 1], data, propensity=CURVE, events=weights)


def test_parts_are_head_tail_and_contexts(log, data) -> None:
    rng = np.random.default_rng(0)
    device = Column(("phone", "desk"), rng.integers(2, size=len(log.counts)).astype(np.int32))
    found = estimate(
        replace(log, columns={"device": device}),
        data.features[:, 1],
        data,
        propensity=CURVE,
        resamples=50,
    )
    names = [each.part for each in found.parts]
    assert names == ["head queries", "middle queries", "tail queries", *names[3:]]
    assert set(names[3:]) == {"device=phone", "device=desk"}
    both = [each for each in found.parts if each.part.startswith("device")]
    low, high = sorted(each.difference for each in both)
    assert low - 1e-3 <= found["clicks"].difference <= high + 1e-3


def test_curves_by_context_weigh_each_session_by_its_own(data) -> None:
    """One context examines everything, the other falls off: their own curves are needed."""
    lists = logged_lists(data, orders=1)
    flat = dr.sample_log(data, lists, dr.PositionBasedUser(eta=0), 30_000, seed=4)
    steep = dr.sample_log(data, lists, dr.PositionBasedUser(eta=2), 30_000, seed=5)
    codes = np.repeat([0, 1], [len(flat.counts), len(steep.counts)]).astype(np.int32)
    log = dr.ClickLog.from_clicks(
        lists,
        np.concatenate([flat.list_of, steep.list_of]),
        np.concatenate([flat.clicks, steep.clicks]),
        np.concatenate([flat.counts, steep.counts]),
        columns={"device": Column(("flat", "steep"), codes)},
        catalogue=data.catalogue,
    )
    falling = dr.PositionBasedUser(eta=2).examination(DEPTH)
    curve = replace(
        dr.Propensity.of(falling),
        details={
            "context": "device",
            "contexts": {
                "flat": {"examination": [1.0] * DEPTH},
                "steep": {"examination": (falling / falling[0]).tolist()},
            },
        },
    )
    good = data.features[:, :2].sum(axis=1)
    found = estimate(log, good, data, propensity=curve, resamples=100)
    ranked = dr.top_lists(data, good)
    users = [dr.PositionBasedUser(eta=0), dr.PositionBasedUser(eta=2)]
    truth = np.mean([true_clicks(data, ranked, u) - true_clicks(data, lists, u) for u in users])
    each = found["clicks", "ips"]
    assert each.low <= truth <= each.high
    assert not found.contradicted
    parts = {part.part: part.difference for part in found.parts}
    # Where everything is examined, no order is better than another.
    assert parts["device=flat"] == pytest.approx(0, abs=1e-9)


def test_a_model_is_judged_on_queries_that_it_was_not_trained_on(log, data) -> None:
    model = dr.fit(log, data, method="naive", ranker=dr.Linear(), steps=20, validation=0.2)
    found = estimate(log, model, data, propensity=CURVE, resamples=50)
    assert found.queries == 160
    assert any("held out" in note for note in found.notes)
    whole = dr.fit(log, data, method="naive", ranker=dr.Linear(), steps=20, validation=0)
    flattered = estimate(log, whole, data, propensity=CURVE, resamples=50)
    assert any("flatters" in note for note in flattered.notes)
    assert flattered.queries == 800


def test_moves_name_queries_and_documents(found, data) -> None:
    gains = [move.gain * move.sessions for move in found.moves[:20]]
    assert gains == sorted(gains, reverse=True)
    assert min(gains) > 0
    assert all(move.gain < 0 for move in found.moves[20:])
    first = found.moves[0]
    assert {placed.document for placed in first.new} == {placed.document for placed in first.old}
    assert first.query in set(data.query_ids)


def test_queries_that_a_run_does_not_rank_are_left_out(log, data) -> None:
    scores = data.features[:, 1].astype(float)
    scores[: 100 * DEPTH] = -np.inf
    found = estimate(log, scores, data, propensity=CURVE, resamples=50)
    assert found.queries == 700
    assert any("ranks 700 of 800 queries" in note for note in found.notes)


def test_a_run_shows_only_what_it_ranks(log, data) -> None:
    scores = data.features[:, 1].astype(float)
    scores[::DEPTH] = -np.inf
    found = estimate(log, scores, data, propensity=CURVE, resamples=50)
    # A fifth of the documents is gone, and with it what they would have earned.
    assert found["clicks", "ips"].new < 0.95 * found["clicks", "ips"].old


def test_support_counts_clicks_and_their_weights(log, data) -> None:
    as_shown = dr.sample_log(data, logged_lists(data, 1), dr.PositionBasedUser(), 20_000, seed=6)
    found = estimate(as_shown, data.features[:, 0], data, propensity=CURVE, resamples=50)
    # The same order: every click counts once.
    assert found.support.effective_clicks == pytest.approx(found.support.clicks)
    assert found.support.top == found.support.examined == 1
    turned = estimate(as_shown, -data.features[:, 0], data, propensity=CURVE, resamples=50)
    assert turned.support.effective_clicks < 0.7 * found.support.clicks
    assert turned.support.heaviest > found.support.heaviest


def test_the_same_seed_gives_the_same_numbers(log, data) -> None:
    one, other = (
        estimate(log, data.features[:, 1], data, propensity=CURVE, resamples=50, seed=3).to_json()
        for _ in range(2)
    )
    assert one == other


def test_a_curve_that_ends_early_cuts_the_lists(log, data) -> None:
    short = dr.Propensity.of(CURVE.examination[:3])
    found = estimate(log, data.features[:, 1], data, propensity=short, resamples=50)
    assert any("first 3 of 5 positions" in note for note in found.notes)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"model": np.ones(7)}, DataError, "but there are 4000 documents"),
        ({"model": "logged"}, SettingsError, "nothing to estimate"),
        ({"model": np.zeros(4000)}, DataError, "it ranks nothing"),
        ({"propensity": "no such thing"}, SettingsError, "neither a file nor one of"),
        ({"resamples": 1}, SettingsError, "an interval needs two"),
        ({"events": {"purchase": 3}}, DataError, "the log has no event 'purchase'"),
        ({"model": "nowhere/"}, DataError, "no such file or model directory"),
    ],
)
def test_what_cannot_be_estimated_is_said_in_a_sentence(change, error, said, log, data) -> None:
    given = {"model": data.features[:, 1], "propensity": CURVE, "resamples": 10, **change}
    with pytest.raises(error, match=said):
        estimate(log, given.pop("model"), data, **given)


def test_a_model_of_other_features_is_refused(log, data, tmp_path) -> None:
    wider = replace(data, features=np.hstack([data.features, data.features]))
    model = dr.fit(log, wider, method="naive", ranker=dr.Linear(), steps=5)
    model.save(tmp_path / "wide")
    with pytest.raises(DataError, match=r"wide was trained on 6 features, and .* has 3"):
        estimate(log, tmp_path / "wide", data, propensity=CURVE)
    sparse = replace(wider, features=wider.features * (np.arange(6) < 2).astype(np.float32))
    with pytest.raises(DataError, match=r"4 of the 6 features that wide ranks by are 0 in all"):
        estimate(log, tmp_path / "wide", sparse, propensity=CURVE)


def test_a_log_without_the_documents_is_refused(log, data) -> None:
    with pytest.raises(DataError, match=r"shows documents that .* does not have"):
        estimate(replace(log, catalogue=None), np.arange(50.0), world(10), propensity=CURVE)


def test_a_log_of_few_queries_or_without_clicks_is_refused(data) -> None:
    few = dr.sample_log(data, logged_lists(data), dr.PositionBasedUser(), 500, seed=0)
    few = few.take_lists(np.flatnonzero(few.lists.queries < 5))
    with pytest.raises(DataError, match=r"clicks on \d queries"):
        estimate(few, data.features[:, 1], data, propensity=CURVE)
    silent = replace(few, clicks=np.zeros_like(few.clicks))
    with pytest.raises(DataError, match=r"has a click|not clicked|no click"):
        estimate(silent, data.features[:, 1], data, propensity=CURVE)


def test_without_any_curve_the_sentence_says_how_to_get_one(data) -> None:
    still = dr.sample_log(data, logged_lists(data, 1), dr.PositionBasedUser(), 5_000, seed=0)
    with pytest.raises(DataError, match="give propensity=dla to learn one, or a file"):
        estimate(still, data.features[:, 1], data)


@pytest.fixture(scope="module")
def taught(data) -> dr.Model:
    """A ranker that learned its own curve, on a log in which nothing moved."""
    still = dr.sample_log(data, logged_lists(data, 1), dr.PositionBasedUser(), 5_000, seed=9)
    return dr.fit(still, data, method="dla", ranker=dr.Linear(), steps=40)


def test_the_new_rankers_own_curve_is_taken_where_it_is_asked_for(taught, log, data) -> None:
    found = estimate(log, taught, data, propensity="dla", resamples=50)
    assert found.curve_source == "learned with the new ranker"
    assert found.curve.examination.tolist() == taught.propensity.examination.tolist()
    assert not found.curve_is_counted
    assert "Nothing says how sure the curve is" in " ".join(verdict_of(found).sentences)


def test_the_new_rankers_own_curve_is_taken_where_no_document_moved(taught, data) -> None:
    still = dr.sample_log(data, logged_lists(data, 1), dr.PositionBasedUser(), 5_000, seed=0)
    found = estimate(still, taught, data, resamples=50)
    assert found.curve_source == "learned with the new ranker"
    assert found.curve.examination.tolist() == taught.propensity.examination.tolist()


def test_a_curve_is_learned_for_a_ranker_that_has_none(log, data, monkeypatch) -> None:
    few = partial(TrainingSettings, steps=40)
    monkeypatch.setattr("dualrank.decisions.curve_choice.TrainingSettings", few)
    seen = []
    found = estimate(
        log,
        data.features[:, 1],
        data,
        propensity="dla",
        resamples=50,
        seed=4,
        progress=lambda *step: seen.append(step),
    )
    assert found.curve_source == "learned by dual learning"
    learned = estimate_by_dual_learning(log, data, settings=few(seed=4))
    assert found.curve.examination.tolist() == learned.examination.tolist()
    assert found.curve.examination[0] > found.curve.examination[-1]
    assert len(seen) > 4  # training tells how far it is, too
