"""What every correction promises; a new one is tested by being registered."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.corrections.correction import Basis
from dualrank.corrections.losses import LOSSES
from dualrank.corrections.position_models import POSITION_MODELS
from dualrank.corrections.stopping import Stopping
from dualrank.data.click_log import Column
from dualrank.errors import SettingsError
from dualrank.learning.feedback import CorrectedClicks
from dualrank.learning.fit import fit
from dualrank.learning.methods import METHODS, Method
from dualrank.learning.plan import Plan
from dualrank.learning.regression_em import RegressionEM
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.kinds import RANKERS
from dualrank.rankers.network import DNN
from dualrank.rankers.ranker import Step
from dualrank.settings import TrainingSettings

CPU = torch.device("cpu")
SETTINGS = TrainingSettings(steps=4, batch_size=32, validate_every=2)
CURVES = {"phone": {"examination": [0.5**k for k in range(6)]}}
GIVEN = Propensity.of(PositionBasedUser().curve[:6])
BY_DEVICE = replace(GIVEN, details={"context": "device", "contexts": CURVES})

# One that is not offered by name, and must hold all the same.
ALL = {**METHODS, "regression-em": Method("regression-em", RegressionEM)}


def cases():
    """Every method with the options that it takes, as options of a plan."""
    for name, method in ALL.items():
        takes = method.takes | method.needs
        options = {"method": method}
        options |= {"propensity": BY_DEVICE} if "propensity" in takes else {}
        yield name, options
        if "position_model" in takes:
            for model in POSITION_MODELS:
                if model != "contextual":
                    yield f"{name}-{model}", {**options, "position_model": model}
        if name in ("naive", "dla"):
            for loss in LOSSES:
                yield f"{name}-{loss}", {**options, "loss": loss}
        if "context" in takes:
            yield f"{name}-by-device", {**options, "context": "device"}


CASES = dict(cases())

pytestmark = pytest.mark.parametrize("case", CASES)


@pytest.fixture(scope="module")
def logged(log):
    """The log, on two devices."""
    codes = np.random.default_rng(0).integers(2, size=len(log.counts)).astype(np.int32)
    return replace(log, columns={"device": Column(("desk", "phone"), codes)})


@pytest.fixture(scope="module")
def ground(logged):
    """What the lists of a method stand on, some scores; nothing for most."""
    scores = np.random.default_rng(7).normal(size=logged.lists.mask.shape)
    scores = np.where(logged.lists.mask, scores, 0).astype(np.float32)

    def ground(case):
        return None if CASES[case]["method"].ground is None else scores

    return ground


@pytest.fixture(scope="module")
def batch(logged, dataset, ground, build):
    """Lists with the labels that the method learns from."""

    def batch(case):
        method, context = CASES[case]["method"], CASES[case].get("context")
        labels = build(case).labels(logged)
        feedback = (
            method.feedback(logged, dataset, context, ground(case))
            if labels is None
            else CorrectedClicks(logged, labels)
        )
        # The order displayed is drawn for a part of the sessions; 24 lists at least for all.
        return feedback.draw(96 if method.name == "imitation" else 24, np.random.default_rng(1))

    return batch


@pytest.fixture(scope="module")
def build(logged, dataset, ground):
    def build(case, *, double=False, seed=0):
        plan = Plan(**CASES[case], settings=replace(SETTINGS, seed=seed))
        basis = Basis(
            logged.lists.depth,
            plan.settings,
            logged,
            plan.propensity,
            plan.position_model,
            plan.context,
            plan.loss,
            dataset.features,
            ground(case),
        )
        correction = plan.way.correction.build(basis)
        for name, part in list(vars(correction).items()):
            if double and isinstance(part, torch.nn.Module | torch.Tensor):
                setattr(correction, name, part.double())
        correction.start(CPU)
        return correction

    return build


def scores_like(shown, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(shown.mask.shape, generator=generator, dtype=shown.labels.dtype)
    return scores * shown.weight


def learn(correction, batch, steps=3):
    """Some steps of the belief, the ranker's scores at random; the last signal."""
    shown = batch.to(CPU)
    for number in range(steps):
        signal = correction.signal(scores_like(shown, number), shown)
        correction.learn(signal.evidence, Step(batch.drawn, signal.clicks))
    return signal


@pytest.fixture
def doubled(build, batch):
    """A correction in double precision that has learned a little, its lists, and scores."""

    def doubled(case):
        drawn = batch(case)
        numbers = {name: getattr(drawn, name) for name in ("labels", "ground", "examined")}
        drawn = replace(
            drawn, **{n: None if v is None else v.astype(float) for n, v in numbers.items()}
        )
        correction = build(case, double=True)
        learn(correction, drawn)
        shown = drawn.to(CPU)
        return correction, shown, scores_like(shown, 9)

    return doubled


def derivatives(function, point, step=1e-5):
    """∂f_x/∂s_x for every displayed position x, all lists at once."""
    found = torch.zeros_like(point)
    for column in range(point.shape[1]):
        shift = torch.zeros_like(point)
        shift[:, column] = step
        moved = function(point + shift) - function(point - shift)
        found[:, column] = moved[:, column] / (2 * step)
    return found


def test_the_slope_agrees_with_finite_differences_of_the_loss(case, doubled):
    correction, shown, scores = doubled(case)
    found = correction.signal(scores, shown).slope
    numeric, step = torch.zeros_like(found), 1e-5
    for cell in shown.mask.nonzero().tolist():
        ends = []
        for sign in (1, -1):
            moved = scores.clone()
            moved[tuple(cell)] += sign * step
            ends.append(correction.signal(moved, shown).loss)
        numeric[tuple(cell)] = (ends[0] - ends[1]) / (2 * step)
    torch.testing.assert_close(found, numeric, rtol=1e-5, atol=1e-6)
    assert found.abs().max() > 1e-3


def test_the_curvature_is_the_derivative_of_the_slope_and_never_negative(case, doubled):
    correction, shown, scores = doubled(case)
    signal = correction.signal(scores, shown)
    found = signal.curvature()
    numeric = derivatives(lambda point: correction.signal(point, shown).slope, scores)
    if signal.targets is not None:
        torch.testing.assert_close(found, numeric, rtol=1e-5, atol=1e-6)
    # Expected labels count as fixed, as in the M-step of EM, which bounds the curvature.
    assert (found >= numeric - 1e-6).all()
    assert (found >= 0).all()
    assert not found[~shown.mask].any()


def test_ground_and_what_was_examined_reach_the_correction(case, doubled):
    """What a batch brings beside labels is looked at by those methods that ask for it."""
    correction, shown, scores = doubled(case)
    method = CASES[case]["method"]
    loss = correction.signal(scores, shown).loss
    for name, asked in (
        ("ground", method.ground is not None or method.name == "imitation"),
        ("examined", isinstance(correction, Stopping)),
    ):
        held = getattr(shown, name)
        assert held is not None or not asked
        if asked:
            moved = replace(shown, **{name: held * 1.5 + torch.sin(scores)})
            assert correction.signal(scores, moved).loss != loss


def test_padding_has_no_slope_and_changes_none(case, doubled, batch):
    correction, shown, scores = doubled(case)
    assert (~shown.mask).any()
    signal = correction.signal(scores, shown)
    assert not signal.slope[~shown.mask].any()
    elsewhere = torch.where(shown.mask, scores, 5.0)
    again = correction.signal(elsewhere, shown)
    torch.testing.assert_close(again.slope, signal.slope)
    torch.testing.assert_close(again.loss, signal.loss)
    for other, one in zip(again.evidence, signal.evidence, strict=True):
        torch.testing.assert_close(other, one)


def test_what_shares_of_a_batch_tell_adds_up_to_what_the_whole_tells(case, build, batch):
    correction, drawn = build(case), batch(case)
    learn(correction, drawn)

    def sums_of(part):
        shown = part.to(CPU)
        scores = shown.lay_out(torch.sin(shown.rows.float()))
        signal = correction.signal(scores, shown)
        return [signal.loss, signal.clicks, *signal.evidence]

    whole = sums_of(drawn)
    shares = [sums_of(drawn.share(worker, 2)) for worker in range(2)]
    for one, *two in zip(whole, *shares, strict=True):
        torch.testing.assert_close(sum(two), one, rtol=1e-4, atol=1e-4)


def test_lists_without_a_click_say_nothing_where_they_are_left_out(case, build, batch):
    correction, drawn = build(case), batch(case)
    silent = replace(drawn, labels=np.zeros_like(drawn.labels))
    signal = learn(correction, silent)
    for part in (signal.loss, signal.slope, signal.curvature(), *signal.evidence):
        assert torch.isfinite(part).all()
    for value in correction.state().values():
        assert torch.isfinite(value).all()
    believed = correction.propensity()
    assert believed is None or np.isfinite(believed.examination).all()
    if correction.clicked_only:
        assert signal.loss == signal.clicks == 0
        assert not signal.slope.any()
        assert not any(part.any() for part in signal.evidence)


@pytest.mark.parametrize("size", [1e4, 1e30])
def test_extreme_scores_never_give_a_nan(case, build, batch, size):
    correction, drawn = build(case), batch(case)
    shown = drawn.to(CPU)
    for number in range(3):
        scores = torch.sign(scores_like(shown, number)) * size
        signal = correction.signal(scores, shown)
        for part in (signal.loss, signal.slope, signal.curvature(), *signal.evidence):
            assert not torch.isnan(part).any()
        assert torch.isfinite(signal.slope).all()
        correction.learn(signal.evidence, Step(drawn.drawn, signal.clicks))
    for value in correction.state().values():
        assert torch.isfinite(value).all()


def test_a_correction_goes_on_from_its_state_with_the_same_bytes(case, build, batch):
    drawn = batch(case)
    whole, first, second = build(case), build(case), build(case, seed=5)
    learn(whole, drawn, 3)
    learn(first, drawn, 3)
    second.load_state({name: tensor.clone() for name, tensor in first.state().items()})
    for correction in (whole, second):
        learn(correction, drawn, 2)
    now, expected = second.state(), whole.state()
    assert now.keys() == expected.keys()
    assert all(torch.equal(now[name], expected[name]) for name in now)
    one, other = (learn(correction, drawn, 1) for correction in (whole, second))
    assert torch.equal(one.slope, other.slope)
    if whole.propensity() is not None:
        curves = [correction.propensity().examination for correction in (whole, second)]
        assert np.array_equal(*curves)


def test_what_learns_has_a_state_and_what_does_not_believes_the_same_for_ever(case, build, batch):
    correction, drawn = build(case), batch(case)
    shown = drawn.to(CPU)
    before = correction.signal(scores_like(shown), shown).slope.clone()
    learn(correction, drawn, 5)
    after = correction.signal(scores_like(shown), shown).slope
    assert correction.learns == bool(correction.state())
    assert correction.learns != torch.equal(before, after)


def test_the_same_seed_gives_the_same_belief_whatever_torch_has_drawn(case, build, batch):
    torch.manual_seed(1)
    first = learn(build(case, seed=2), batch(case))
    torch.manual_seed(2)
    second = learn(build(case, seed=2), batch(case))
    assert torch.equal(first.slope, second.slope)


@pytest.mark.parametrize("kind", RANKERS)
def test_it_teaches_every_ranker_or_refuses_with_one_sentence(case, kind, logged, dataset):
    ranker = DNN((4,)) if kind == "dnn" else RANKERS[kind]()
    options = {**CASES[case], "ranker": ranker, "settings": SETTINGS, "validation": 0.3}
    correction = options["method"].correction
    refused = correction.learns or correction.slopes_only or "loss" in options
    if ranker.makes.at_once and refused:
        with pytest.raises(SettingsError, match="takes all clicks at once") as caught:
            fit(logged, dataset, **options)
        assert "\n" not in str(caught.value)
        return
    model = fit(logged, dataset, **options)
    scores = model.predict(dataset)
    assert np.isfinite(scores).all()
    assert np.ptp(scores) > 0
    assert model.training["method"] == CASES[case]["method"].name
    if model.propensity is not None:
        assert np.isfinite(model.propensity.examination).all()
    if kind == "dnn":  # Other rankers repeat themselves in test_rankers.py.
        again = fit(logged, dataset, **options)
        assert np.array_equal(again.predict(dataset), scores)
