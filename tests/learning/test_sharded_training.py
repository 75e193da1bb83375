"""Training on shards draws what training on one log draws, and learns the same."""

import os
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from dualrank.data.click_log import ClickLog
from dualrank.data.scaling import KINDS, Scaler
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.errors import DataError, SettingsError, StoppedError
from dualrank.learning.feedback import DisplayedOrder, LoggedClicks, ReadClicks
from dualrank.learning.fit import fit
from dualrank.learning.logging_scores import Ground
from dualrank.learning.sharded import own_shards, query_sample, read_ahead, sharded_source
from dualrank.learning.sharded.mapped_feedback import MappedClicks, MappedGround, MappedOrder
from dualrank.learning.sharded.own_shards import Gaps
from dualrank.learning.sharded.sharded_source import ShardedSource, deal
from dualrank.rankers.network import DNN

from .sharded_run import SETTINGS, joined, write_problem


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    return write_problem(tmp_path_factory.mktemp("sharded") / "log")


@pytest.fixture(scope="module")
def source(sharded):
    return ShardedSource.of(sharded, 0, 0)


@pytest.fixture(scope="module")
def whole(sharded):
    return joined(sharded)


def assert_same_draws(mapped, held, features, times=20):
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(times):
        one, two = mapped.draw(16, ours), held.draw(16, theirs)
        assert one.drawn == two.drawn
        for name in ("labels", "contexts", "examined"):
            if getattr(two, name) is not None:
                np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        if two.ground is not None:
            np.testing.assert_allclose(one.ground, two.ground, rtol=1e-5, atol=1e-6)
        mask = two.documents >= 0
        np.testing.assert_array_equal(one.documents >= 0, mask)
        np.testing.assert_array_equal(
            one.features[one.documents[mask]], features[two.documents[mask]]
        )
    assert ours.bit_generator.state == theirs.bit_generator.state


@pytest.mark.parametrize("context", [None, "device"])
@pytest.mark.parametrize("reads", [False, True])
def test_the_draw_over_shards_is_the_draw_over_one_log(source, whole, context, reads):
    log, data = whole
    scaler = source.scaler("standard")
    mapped = MappedClicks(source, scaler, 7, context=context, reads=reads)
    held = (ReadClicks if reads else LoggedClicks)(log, context)
    assert_same_draws(mapped, held, scaler.transform(data.features))


def test_a_log_of_more_shards_than_files_may_be_open_is_trained_on(tmp_path):
    resource = pytest.importorskip("resource")
    log = write_problem(tmp_path / "log", shards=40)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = len(os.listdir("/proc/self/fd")) + 40
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        source = ShardedSource.of(log, 0, 0)
        scaler = source.scaler("standard")
        drawn = MappedClicks(source, scaler, 7).draw(16, np.random.default_rng(5))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert drawn.drawn == 16


def test_orders_are_drawn_with_the_same_other_candidates(source, whole):
    log, data = whole
    scaler = source.scaler("log")
    held = DisplayedOrder(log, data)
    assert_same_draws(MappedOrder(source, scaler, 12), held, scaler.transform(data.features))


def test_lists_stand_on_the_same_ground(source, whole):
    log, data = whole
    imitated = fit(log, data, method="imitation", ranker=DNN(()), steps=30, validation=0)
    ground, scaler = Ground.of(imitated, log.lists, data), source.scaler("standard")
    mapped = MappedClicks(source, scaler, 20, ground=MappedGround.of(source, ground))
    held = LoggedClicks(log, ground=ground.under(log.lists, data))
    assert_same_draws(mapped, held, scaler.transform(data.features))


def test_reading_ahead_changes_no_draw_and_no_random_state(source, monkeypatch):
    scaler = source.scaler("standard")

    def batches(room, states, steps=9):
        monkeypatch.setattr(read_ahead, "MOST_BYTES", room)
        mapped, rng, found = MappedClicks(source, scaler, steps), np.random.default_rng(2), []
        for size in (8, 8, 8, 8, 3, 3, 8, 8, 8):
            found.append(mapped.draw(size, rng))
            states.append(rng.bit_generator.state)
        # Who goes back in time gets what was drawn then.
        rng.bit_generator.state = states[3]
        found.append(mapped.draw(3, rng))
        return found

    states, others = [], []
    ahead, alone = batches(1 << 20, states), batches(0, others)
    assert states == others
    for one, two in zip(ahead, alone, strict=True):
        for name in ("documents", "labels", "features"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(ahead[-1].features, ahead[4].features)


@pytest.mark.parametrize(
    ("kind", "options"),
    [(MappedClicks, {}), (MappedClicks, {"context": "device", "reads": True}), (MappedOrder, {})],
)
def test_what_is_read_ahead_takes_no_more_memory_than_was_set(source, monkeypatch, kind, options):
    room, rng = 1 << 22, np.random.default_rng(0)
    monkeypatch.setattr(read_ahead, "MOST_BYTES", room)
    scaler = source.scaler("standard")
    kind(source, scaler, 1, **options).draw(256, rng)
    tracemalloc.start()
    try:
        kind(source, scaler, 10_000, **options).draw(256, rng)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert room / 2 < peak < room


def test_lists_without_a_click_are_left_out_before_their_documents_are_read(source):
    scaler = source.scaler("standard")
    every = MappedClicks(source, scaler).draw(64, np.random.default_rng(1))
    clicked = MappedClicks(source, scaler, clicked_only=True).draw(64, np.random.default_rng(1))
    expected = every.labelled()
    assert 0 < len(clicked) == len(expected) < 64
    assert clicked.drawn == 64
    np.testing.assert_array_equal(clicked.labels, expected.labels)
    assert len(clicked.features) == (clicked.documents >= 0).sum()


def test_held_out_queries_are_never_drawn_and_the_others_as_from_a_log_without_them(sharded, whole):
    source = ShardedSource.of(sharded, 0.3, 1)
    log, data = whole
    held_out = {row.tobytes() for row in data_of(source.sample.held_out, source.sample.dataset)}
    held = np.array([row.tobytes() in held_out for row in data_of(log, data)])
    assert 2 * 15 <= held.sum() <= 2 * 20
    rest = log.take_lists(np.flatnonzero(~held))
    assert source.sessions == rest.sessions
    scaler = source.scaler("none")
    assert_same_draws(MappedClicks(source, scaler, 20), LoggedClicks(rest), data.features)


def data_of(log, data):
    """The features of the documents of every list, which name it."""
    return np.where(log.lists.mask[:, :, None], data.features[log.lists.documents], 0)


@pytest.mark.parametrize("block", [1, 3, 1_000])
def test_tickets_step_over_gaps_wherever_they_are(sharded, monkeypatch, block):
    monkeypatch.setattr(own_shards, "LISTS_PER_BLOCK", block)
    rng = np.random.default_rng(0)
    shard = sharded.shards[0]
    session_of = np.repeat(np.arange(shard.lists), shard.log.sessions_per_list)
    for share in (0, 0.2, 0.5, 0.9):
        held = rng.random(shard.queries) < share
        left = np.flatnonzero(~held[shard.log.lists.queries][session_of])
        found = Gaps.of(shard, held).sessions_at(np.arange(len(left)))
        np.testing.assert_array_equal(found, left)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("naive", {}),
        ("dla", {}),
        ("dla", {"context": "device"}),
        ("likelihood", {}),
        ("stopping", {}),
        ("pairwise", {}),
        ("grounded", {}),
    ],
)
def test_what_is_learned_from_shards_is_what_is_learned_from_one_log(
    sharded, whole, method, options
):
    log, data = whole
    given = {**SETTINGS, "method": method, "validation": 0, **options}
    one, two = fit(sharded, **given), fit(log, data, **given)
    np.testing.assert_allclose(one.predict(data), two.predict(data), atol=1e-5)
    assert np.ptp(one.predict(data)) > 0.1
    if one.propensity is not None:
        np.testing.assert_allclose(
            one.propensity.examination, two.propensity.examination, rtol=1e-5
        )
        assert one.propensity.sessions == two.propensity.sessions
    assert one.training["history"]["clicked"] == two.training["history"]["clicked"]
    assert one.training["data"] == sharded.digest


def test_auto_makes_one_ranker_of_what_is_drawn_from_shards(sharded, whole):
    given = {**SETTINGS, "method": "auto", "validation": 0.2}
    model = fit(sharded, **given)
    assert model.training["auto"]["leads"].keys() >= {"auto", "imitation"}
    relevance = whole[1].features[:, 0]
    assert np.corrcoef(model.predict(whole[1]), relevance)[0, 1] > 0.5


def test_an_interrupted_training_goes_on_with_the_same_result(sharded, whole, tmp_path):
    def stop(done, total):
        if done == 30:
            raise StoppedError("enough")

    through = fit(sharded, **SETTINGS, checkpoint=tmp_path / "through")
    with pytest.raises(StoppedError, match="enough"):
        fit(sharded, **SETTINGS, checkpoint=tmp_path / "left", progress=stop)
    went_on = fit(sharded, **SETTINGS, checkpoint=tmp_path / "left")
    np.testing.assert_array_equal(went_on.predict(whole[1]), through.predict(whole[1]))
    assert went_on.training["history"] == through.training["history"]


@pytest.mark.parametrize("kind", KINDS)
def test_scaling_of_parts_is_that_of_all_whoever_holds_them(kind):
    rng = np.random.default_rng(0)
    parts = [rng.gamma(2.0, size=(n, 3)).astype(np.float32) for n in (5, 0, 40, 13)]
    parts[2][:, 1] = parts[0][:, 1] = parts[3][:, 1] = 7.0
    together = Scaler.fit(np.concatenate(parts), kind=kind)
    tables = []

    def seen(table):
        tables.append(table)
        return table

    alone = Scaler.fit_parts(parts, kind=kind, together=seen)
    np.testing.assert_array_equal(alone.kept, together.kept)
    np.testing.assert_allclose(alone.shift, together.shift, rtol=1e-12)
    np.testing.assert_allclose(alone.scale, together.scale, rtol=1e-12)
    # Two workers, each with two of the parts: what one does not have is 0 until it is filled in.
    for own in ((0, 2), (1, 3)):
        mine = [part if number in own else None for number, part in enumerate(parts)]
        filled = iter(tables)

        def fill(table, own=own, filled=filled):
            full = next(filled)
            np.testing.assert_array_equal(table[list(own)], full[list(own)])
            assert not np.delete(table, own, axis=0).any()
            return full

        assert Scaler.fit_parts(mine, kind=kind, together=fill).to_dict() == alone.to_dict()


def test_the_sample_has_room_for_so_many_lists_and_says_so(sharded, monkeypatch):
    monkeypatch.setattr(query_sample, "MOST_LISTS", 20)
    source = ShardedSource.of(sharded, 0.5, 0)
    sample = source.sample
    assert len(sample.held_out.lists) <= 20 + len(sharded.shards)
    assert len(sample.rest.lists) <= 20 + len(sharded.shards)
    # What is not looked at is trained on.
    assert source.sessions == sharded.sessions - sample.held_out.sessions
    said = source.describe()["shards"]
    assert said["sampled_lists"] == len(sample.log.lists) < sharded.lists
    assert said["sampled_sessions"] == sample.log.sessions < said["sessions"] == sharded.sessions


def test_of_a_query_with_very_many_lists_some_speak_for_all(sharded, monkeypatch):
    monkeypatch.setattr(query_sample, "MOST_OF_ONE_QUERY", 1)
    source = ShardedSource.of(sharded, 0.5, 0)
    held_out = source.sample.held_out
    assert len(np.unique(held_out.lists.queries)) == len(held_out.lists)
    # All lists of a held-out query are held out, whether they are looked at or not.
    whole = ShardedSource.of(sharded, 0.5, 0).sessions
    monkeypatch.undo()
    assert ShardedSource.of(sharded, 0.5, 0).sessions == whole


def test_the_sample_does_not_grow_with_the_number_of_shards(tmp_path, monkeypatch):
    sharded = write_problem(tmp_path / "log", shards=20)
    monkeypatch.setattr(query_sample, "MOST_LISTS", 10)
    source = ShardedSource.of(sharded, 0.5, 0)
    # Each of the shards has room for half a list, and takes one instead of two.
    assert len(source.sample.rest.lists) <= len(sharded.shards)
    monkeypatch.setattr(query_sample, "MOST_VALUES", 20)
    monkeypatch.setattr(query_sample, "SURE_SHARDS", 5)
    source = ShardedSource.of(sharded, 0.5, 0)
    assert 5 <= len(source.sample.dataset) <= 2 * 5


@pytest.mark.slow
def test_shards_without_a_query_or_a_session_change_nothing(tmp_path):
    sharded = write_problem(tmp_path / "log", shards=50)
    assert 0 in [shard.queries for shard in sharded.shards]
    assert 0 in [shard.lists for shard in sharded.shards if shard.queries]
    source, (log, data) = ShardedSource.of(sharded, 0, 0), joined(sharded)
    scaler = source.scaler("standard")
    assert_same_draws(
        MappedClicks(source, scaler, 20), LoggedClicks(log), scaler.transform(data.features)
    )
    model = fit(sharded, **SETTINGS, validation=0.1)
    assert model.training["shards"]["held_out_sessions"] > 0


def test_nothing_held_out_is_said_where_something_should_be(sharded, monkeypatch):
    none = np.zeros(len(sharded.shards), int)
    monkeypatch.setattr(sharded_source, "shares_of", lambda log, share: none)
    assert ShardedSource.of(sharded, 0, 0).sample.held_out is None
    with pytest.raises(DataError, match="too few queries with clicks to hold some out"):
        ShardedSource.of(sharded, 0.1, 0)


def test_missing_values_are_found_wherever_they_are(tmp_path):
    sharded = write_problem(tmp_path / "log")
    source = ShardedSource.of(sharded, 0, 0)
    path = source.own.shards[1].folder / "features.npy"
    content = bytearray(path.read_bytes())
    content[-4:] = np.float32(np.nan).tobytes()
    path.write_bytes(content)
    for scaling in ("standard", "none"):
        with pytest.raises(DataError, match=r"log: feature 4 is missing in 1 of 420 doc.*: fill"):
            fit(source, **SETTINGS, scaling=scaling)


def test_clicks_are_looked_for_in_all_shards_not_in_the_sample_alone(tmp_path, monkeypatch):
    none = write_problem(tmp_path / "none", clicked=0)
    with pytest.raises(DataError, match=f"none of the {none.sessions} sessions has a click"):
        fit(none, **SETTINGS, validation=0)
    few = write_problem(tmp_path / "few", clicked=0.1)
    monkeypatch.setattr(query_sample, "MOST_LISTS", 10)
    assert not ShardedSource.of(few, 0, 0).sample.log.clicks.any()
    assert fit(few, **SETTINGS, method="naive", validation=0).training["history"]["clicked"] > 0
    with pytest.raises(DataError, match=r"hold some out, in a sample of \d+ of 6,\d+ sessions"):
        fit(few, **SETTINGS, method="naive", validation=0.2)


def test_shards_are_dealt_out_evenly(sharded):
    sizes = [7, 1, 5, 3, 0, 4]
    shards = [
        replace(sharded.shards[0], number=number, sessions=size)
        for number, size in enumerate(sizes)
    ]
    owners = deal(replace(sharded, shards=tuple(shards)), 3)
    loads = np.bincount(owners, sizes, 3)
    assert loads.max() - loads.min() <= 1
    assert deal(replace(sharded, shards=tuple(shards)), 6) != owners
    with pytest.raises(SettingsError, match="4 workers for 3 shards: each needs one of its own"):
        deal(sharded, 4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "affine"}, "method affine makes the labels of all lists before"),
        ({"method": "dcm"}, "method dcm makes the labels"),
        ({"method": "click-model"}, "method click-model makes the labels"),
        ({"ranker": "trees"}, "a ranker of kind trees takes all lists at once, .*/log.parquet"),
        ({"ranker": "svm", "method": "naive"}, "a ranker of kind svm takes all lists"),
        ({"events": {"purchase": 3}}, "weighted events"),
        ({"start": "a model"}, "goes on from no model"),
    ],
)
def test_what_takes_all_lists_at_once_is_refused(sharded, options, said):
    with pytest.raises(SettingsError, match=said):
        fit(sharded, **options)


def test_features_are_in_the_shards_or_nowhere(sharded, whole, tmp_path):
    with pytest.raises(SettingsError, match="a log in shards has the features of its documents"):
        fit(sharded, whole[1])
    with pytest.raises(SettingsError, match="needs the features of its documents beside it"):
        fit(whole[0])
    without = write_problem(tmp_path / "log", features=False)
    with pytest.raises(DataError, match=r"no features; reduce the log again .*--features FILE"):
        fit(without)


def test_columns_that_are_not_there_are_named(sharded):
    with pytest.raises(DataError, match="no column 'layout' beside the clicks; it has device"):
        fit(sharded, method="dla", context="layout")


@pytest.mark.parametrize("fault", ["cut", "missing", "changed", "of another log"])
def test_a_shard_that_is_not_whole_ends_the_training_before_it_begins(tmp_path, fault):
    write_problem(tmp_path / "log")
    path = tmp_path / "log" / "00001" / "documents.npy"
    if fault == "cut":
        path.write_bytes(path.read_bytes()[:-8])
        said = r"documents.npy: has .* bytes, and had .* when it was written"
    elif fault == "missing":
        path.parent.rename(tmp_path / "elsewhere")
        said = "00001: this shard is missing"
    elif fault == "changed":
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        said = "documents.npy: damaged, or a shard of another log"
    else:
        other = write_problem(tmp_path / "other", seed=1).shards[1].folder
        path.parent.rename(tmp_path / "elsewhere")
        other.rename(path.parent)
        said = r"00001/.*another log"
    with pytest.raises(DataError, match=said):
        fit(tmp_path / "log", **SETTINGS, checkpoint=tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()


def test_gaps_in_lists_are_found_in_every_shard(tmp_path):
    """Methods that follow users down the list look at all lists, not at the sample alone."""
    sharded = write_problem(tmp_path / "log")
    source = ShardedSource.of(sharded, 0, 0)
    shard = source.own.shards[2]
    documents = shard.log.lists.documents.copy()
    documents[-1, :3] = (-1, documents[-1, 0], documents[-1, 1])
    lists = replace(shard.log.lists, documents=documents)
    shard.__dict__["log"] = ClickLog(**{**vars(shard.log), "lists": lists})
    with pytest.raises(DataError, match=r"1 of .* lists have gaps"):
        fit(source, method="stopping", **SETTINGS)


def test_a_folder_of_shards_is_opened(sharded):
    model = fit(str(sharded.folder), **{**SETTINGS, "ranker": "linear"}, steps=20)
    assert model.training["shards"]["count"] == 3
    assert isinstance(ShardedLog.open(sharded.folder), ShardedLog)
