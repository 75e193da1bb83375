"""Models that go on from new clicks, with a memory of older ones."""

import hashlib
import logging
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

import dualrank as dr
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.corrections.dual import DualLearning
from dualrank.corrections.ipw import InversePropensity
from dualrank.corrections.likelihood import Likelihood
from dualrank.errors import CheckpointError, DataError, SettingsError
from dualrank.learning import model as models
from dualrank.learning.memory import Memory
from dualrank.learning.update import plan_of
from dualrank.rankers.batch import Batch
from dualrank.settings import TrainingSettings
from dualrank.storage import whole_folder

SHORT = {"ranker": dr.DNN((8,)), "steps": 60, "validation": 0}


@pytest.fixture(scope="module")
def model(log, dataset):
    return dr.fit(log, dataset, **SHORT)


@pytest.fixture(scope="module")
def new(dataset, lists):
    return sample_log(dataset, lists, PositionBasedUser(), 3_000, 9)


def same_bytes(one, two):
    return all(
        torch.equal(a, b)
        for a, b in zip(one.ranker.tensors().values(), two.ranker.tensors().values(), strict=True)
    )


@pytest.mark.parametrize("method", ["dla", "likelihood", "naive"])
def test_without_memory_and_optimisers_an_update_is_a_training_from_a_start(
    log, dataset, new, method
):
    start = dr.fit(log, dataset, method=method, **SHORT)
    how = {"steps": 30, "learning_rate": 0.1, "validation": 0, "seed": 4}
    updated = start.update(new, dataset, **how)
    again = dr.fit(new, dataset, method=method, ranker=dr.DNN((8,)), start=start, **how)
    assert same_bytes(updated, again)
    if method != "naive":
        np.testing.assert_array_equal(updated.propensity.examination, again.propensity.examination)


def test_the_same_seed_gives_the_same_bytes_and_the_start_stays(log, dataset, model, new, tmp_path):
    start = model.remember(log, dataset)
    before = start.predict(dataset)
    digests = []
    for name in ("one", "two"):
        start.update(new, dataset, steps=20, half_life=5_000, seed=3).save(tmp_path / name)
        files = sorted((tmp_path / name).iterdir())
        digests.append([(f.name, hashlib.sha256(f.read_bytes()).hexdigest()) for f in files])
    assert digests[0] == digests[1]
    assert "memory.safetensors" in dict(digests[0])
    np.testing.assert_array_equal(start.predict(dataset), before)
    loaded = dr.Model.load(tmp_path / "one")
    once_more = [each.update(log, dataset, steps=5) for each in (loaded, loaded)]
    assert same_bytes(*once_more)


def test_every_update_draws_what_is_remembered_anew(dataset, model, new, monkeypatch):
    states, keep = [], Memory.kept

    def kept(self, most, rng):
        states.append(rng.bit_generator.state["state"]["state"])
        return keep(self, most, rng)

    monkeypatch.setattr(Memory, "kept", kept)
    how = {"steps": 1, "memory": 5, "validation": 0, "seed": 3}
    first = model.update(new, dataset, **how)
    second = first.update(new, dataset, **how)
    model.update(new, dataset, **how)
    assert (len(first.memory), second.training["update"]["number"]) == (5, 2)
    assert states[0] != states[1]
    assert states[0] == states[2]


def test_what_an_update_found_stands_in_the_manifest(log, dataset, model, new):
    first = model.remember(log, dataset).update(new, dataset, steps=20)
    found = first.training["update"]
    assert found["number"] == 1
    assert found["sessions"] == new.sessions
    assert found["older_sessions"] == log.sessions
    assert 0 < found["moved"] < 0.5
    assert found["lead"]["queries"] >= 2
    assert first.memory.total == pytest.approx(new.sessions + log.sessions)
    assert first.update(log, dataset, steps=5).training["update"]["number"] == 2
    assert first.training["settings"] == model.training["settings"]


def test_half_lives_are_counted_in_new_sessions(log, dataset, model, new):
    start = model.remember(log, dataset)
    updated = start.update(new, dataset, steps=5, half_life=1_500)
    assert updated.training["update"]["older_sessions"] == pytest.approx(log.sessions / 4)
    assert updated.memory.total == pytest.approx(new.sessions + log.sessions / 4)


def test_a_model_that_remembers_nothing_says_so(dataset, model, new, caplog):
    with caplog.at_level(logging.WARNING):
        updated = model.update(new, dataset, steps=5)
        assert "remembers nothing of what it was trained on" in caplog.text
        assert updated.training["update"]["warnings"]
        caplog.clear()
        assert model.update(new, dataset, steps=5, memory=0).memory is None
        assert not caplog.text


def test_adagrad_goes_on_with_its_sums(log, dataset, new, tmp_path):
    start = dr.fit(log, dataset, optimizer="adagrad", **SHORT)
    start.save(tmp_path / "m")
    start = dr.Model.load(tmp_path / "m")
    assert {"ranker.sum.0", "correction.sum.0"} <= start.optimizers.keys()
    updated = start.update(new, dataset, steps=3)
    for name, total in start.optimizers.items():
        if ".sum." in name:
            assert (updated.optimizers[name] >= total).all()
    fresh = replace(start, optimizers={}).update(new, dataset, steps=3)
    assert not same_bytes(updated, fresh)


def test_forms_that_cannot_begin_with_a_curve_go_on_with_their_state(log, dataset, new):
    start = dr.fit(log, dataset, position_model="network", **SHORT)
    still = {"steps": 1, "learning_rate": 1e-12, "propensity_rate": 1e-12}
    updated = start.update(new, dataset, **still)
    np.testing.assert_allclose(
        updated.propensity.examination, start.propensity.examination, rtol=1e-4
    )


def settled_batch(settled):
    rng = np.random.default_rng(0)
    documents = np.arange(40, dtype=np.int32).reshape(8, 5)
    clicks = (rng.random((8, 5)) < 0.4).astype(np.float32)
    return Batch(documents, clicks, 8, settled=settled).to(torch.device("cpu"))


CURVE = np.log(np.array([1, 0.7, 0.5, 0.3, 0.2], np.float32))


@pytest.mark.parametrize("kind", [DualLearning, Likelihood])
def test_settled_lists_say_nothing_about_position(kind):
    settled = np.full((8, 5), np.nan, np.float32)
    settled[:5] = CURVE
    scores = torch.from_numpy(np.random.default_rng(1).normal(size=(8, 5)).astype(np.float32))
    correction = kind(5, TrainingSettings())
    with_all = correction.signal(scores, settled_batch(settled))
    alone = settled_batch(None)
    open_lists = Batch(alone.documents[5:].numpy(), alone.labels[5:].numpy(), 8)
    of_today = correction.signal(scores[5:], open_lists.to(torch.device("cpu")))
    for one, two in zip(with_all.evidence, of_today.evidence, strict=True):
        torch.testing.assert_close(one, two)
    torch.testing.assert_close(with_all.slope[5:], of_today.slope)


@pytest.mark.parametrize("kind", [DualLearning, Likelihood])
def test_settled_lists_move_the_ranker_as_their_curve_would(kind):
    scores = torch.from_numpy(np.random.default_rng(1).normal(size=(8, 5)).astype(np.float32))
    believes = kind(5, TrainingSettings())
    believes.believe(dr.Propensity.of(np.exp(CURVE)))
    expected = believes.signal(scores, settled_batch(None)).slope
    settled = np.tile(CURVE, (8, 1))
    found = kind(5, TrainingSettings()).signal(scores, settled_batch(settled)).slope
    torch.testing.assert_close(found, expected)


def test_settled_lists_keep_the_weights_that_were_measured():
    other = InversePropensity(dr.Propensity.of([1, 1, 1, 1, 1]), 5)
    settled = np.full((8, 5), np.nan, np.float32)
    settled[2] = CURVE
    weights = other.weights(settled_batch(settled))
    torch.testing.assert_close(weights[2], torch.from_numpy(np.exp(-CURVE)))
    assert (weights[3] == 1).all()


def test_changed_users_settle_what_is_remembered(log, dataset, model, new):
    start = model.remember(log, dataset)
    updated = start.update(new, dataset, steps=5, changed=True)
    settled = updated.memory.settled[updated.memory.are_settled]
    assert len(settled) == len(start.memory)
    np.testing.assert_allclose(settled[0], np.log(model.propensity.examination), rtol=1e-5)
    rate = updated.training["update"]["settings"]["propensity_rate"]
    assert rate == pytest.approx(1 + log.sessions / (0.9 * new.sessions), rel=0.2)


@pytest.mark.parametrize("method", ["dla", "likelihood"])
def test_the_curve_of_changed_users_is_found(make_dataset, method):
    """Users step from η = 0 to 1: told so, the curve is that of the new."""
    data = make_dataset(queries=600, lengths=(6, 7))
    rng = np.random.default_rng(0)
    shown = dr.top_lists(data, data.features[:, 0] + rng.normal(size=data.document_count), 6)
    truth = PositionBasedUser(eta=1.0).examination(6)
    old = sample_log(data, shown, PositionBasedUser(eta=0.0), 30_000, 1)
    recent = sample_log(data, shown, PositionBasedUser(eta=1.0), 30_000, 2)
    model = dr.fit(old, data, method=method, ranker=dr.DNN((8,)), steps=400, validation=0)
    model = model.remember(old, data)
    errors = []
    for changed in (True, False):
        after = model.update(
            recent, data, changed=changed, validation=0, steps=400, propensity_rate=3.0
        )
        errors.append(np.abs(np.log(after.propensity.examination * truth[0] / truth)).max())
    assert errors[0] < 0.12
    assert errors[1] > 2 * errors[0]


def test_auto_goes_on_as_one_ranker(log, dataset, new):
    model = dr.fit(log, dataset, method="auto", ranker=dr.DNN((4,)), steps=30, validation=0.3)
    chosen = model.training["auto"]
    if any("stopping" in each for each in chosen.get("weights", [chosen["chosen"]])):
        with pytest.raises(SettingsError, match="method stopping does not go on"):
            model.update(new, dataset)
    assert model.update(new, dataset, method="likelihood", steps=3).training["method"] == "auto"


def test_partial_fit_goes_on(make_dataset):
    data = make_dataset(queries=80, lengths=(5, 6))
    rng = np.random.default_rng(0)
    clicks = (rng.random(data.document_count) < 0.3).astype(int)
    position = np.tile(np.arange(1, 6), 80)
    rows = {"qid": data.query_of_document, "position": position}
    ranker = dr.ClickRanker(hidden=(4,), steps=20, validation=0)
    ranker.partial_fit(data.features, clicks, **rows)
    assert ranker.model_.memory.total == 80
    before = ranker.predict(data.features)
    ranker.partial_fit(data.features, clicks, **rows)
    assert ranker.model_.memory.total == 160
    assert ranker.model_.training["update"]["number"] == 1
    assert not np.array_equal(ranker.predict(data.features), before)
    ranker.set_params(half_life=160.0).partial_fit(data.features, clicks, **rows)
    assert ranker.model_.memory.total == pytest.approx(80 + 160 / 2**0.5)
    with pytest.raises(DataError, match="expecting 5 features"):
        ranker.partial_fit(data.features[:, :3], clicks, **rows)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"half_life": 0}, "half_life is a number of sessions above 0, not 0"),
        ({"half_life": float("nan")}, "half_life is a number of sessions"),
        ({"memory": -1}, "memory is a number of lists, 0 or more, not -1"),
        ({"validation": 1}, "validation is a share between 0 and 1, not 1"),
        ({"method": "stopping"}, "method stopping does not go on from new clicks"),
        ({"method": "dcm"}, "method dcm does not go on"),
        ({"method": "pairwise"}, "method pairwise does not go on"),
        ({"method": "auto"}, "does not go on|something to choose by"),
        ({"context": "device"}, "an update has no option 'context'"),
        ({"method": "ipw", "propensity": dr.Propensity.of([1, 0.5])}, "knows 2 positions"),
    ],
)
def test_what_does_not_go_on_is_refused(dataset, model, new, options, sentence):
    with pytest.raises(SettingsError, match=sentence):
        model.update(new, dataset, **({"steps": 3} | options))


@pytest.mark.parametrize("ranker", [dr.Trees(leaves=3), dr.RankingSVM()])
def test_rankers_that_take_all_lists_are_refused(log, dataset, new, ranker):
    model = dr.fit(log, dataset, method="naive", ranker=ranker, steps=2, validation=0)
    for work in (model.update, model.remember):
        with pytest.raises(SettingsError, match="takes all lists at once, and does not go on"):
            work(new, dataset)


def test_other_features_and_nothing_to_learn_are_refused(make_dataset, dataset, model, new):
    with pytest.raises(DataError, match="3 features; the model was trained on 5"):
        model.update(new, replace(dataset, features=dataset.features[:, :3]))
    silent = replace(new, clicks=np.zeros_like(new.clicks))
    with pytest.raises(DataError, match="nothing to learn from"):
        model.update(silent, dataset)


def test_training_on_events_or_contexts_does_not_go_on(model):
    for said in ({"events": {"click": 1}}, {"context": "device"}):
        with pytest.raises(SettingsError, match="does not go on"):
            plan_of(replace(model, training={**model.training, **said}))
    broken = {**model.training, "settings": {"batch_size": "many"}}
    with pytest.raises(SettingsError, match="does not say how it was trained"):
        plan_of(replace(model, training=broken))


def test_a_damaged_memory_is_refused(log, dataset, model, tmp_path):
    model.remember(log, dataset).save(tmp_path / "m")
    path = tmp_path / "m" / "memory.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"memory\.safetensors: damaged"):
        dr.Model.load(tmp_path / "m")
    model.save(tmp_path / "m")
    assert not path.exists()


def test_a_killed_save_leaves_what_was_there(log, dataset, model, new, tmp_path):
    updated = model.remember(log, dataset).update(new, dataset, steps=2)
    model.save(tmp_path / "out")
    real = models.atomic_file
    for files in range(2):
        child = os.fork()
        if child == 0:
            written = iter(range(files))

            def dying(path, written=written, **more):
                if next(written, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(path, **more)

            models.atomic_file = dying
            with whole_folder(tmp_path / "out") as folder:
                updated.save(folder)
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        np.testing.assert_array_equal(
            dr.Model.load(tmp_path / "out").predict(dataset), model.predict(dataset)
        )
    with whole_folder(tmp_path / "out") as folder:
        updated.save(folder)
    assert dr.Model.load(tmp_path / "out").training["update"]["number"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
