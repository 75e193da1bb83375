"""Plain arrays and numpy score as the model does, where neither torch nor dualrank is."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import torch

from dualrank.data.scaling import KINDS, Scaler
from dualrank.learning import plain_scoring
from dualrank.learning.model import Model
from dualrank.learning.plain_scoring import plain_model, scores_of_batches, scoring_by
from dualrank.rankers.activations import ACTIVATIONS
from dualrank.rankers.forest import Forest
from dualrank.rankers.network import DNN, Linear
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.rankers.trees import TreeRanker

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(10_000, 5)).astype(np.float32)

ROUNDING = 3e-6
"""Of float32 sums in another order, relative to the scores."""


def network(settings, scaling="standard", names=None):
    ranker = settings.build(5, seed=1)
    for weight in getattr(ranker, "weights", []):
        if weight.dim() == 2:
            weight.normal_(0, 0.3, generator=torch.Generator().manual_seed(2))
    return Model(ranker, Scaler.fit(FEATURES, kind=scaling), feature_names=names,
                 kind=settings.kind)  # fmt: skip


def trees(count=20, depth=6, names=None):
    """Complete trees of random splits."""
    rng = np.random.default_rng(3)
    inner, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    numbers = np.arange(nodes, dtype=np.int32)
    one = [
        Forest(
            np.where(numbers < inner, rng.integers(0, 5, nodes), -1).astype(np.int32),
            rng.choice(FEATURES[:, 0], nodes),
            np.where(numbers < inner, 2 * numbers + 1, 0).astype(np.int32),
            np.where(numbers < inner, 2 * numbers + 2, 0).astype(np.int32),
            rng.random(nodes) < 0.5,
            rng.normal(size=nodes).astype(np.float32),
            np.zeros(1, np.int32),
        )
        for _ in range(count)
    ]
    forest = Forest.together(one)
    ranker = TreeRanker(5)
    parts = ("feature", "threshold", "left", "right", "missing_left", "value", "roots")
    ranker.load_tensors({name: torch.from_numpy(getattr(forest, name)) for name in parts})
    scaler = Scaler("none", 5, np.arange(5), np.zeros(5), np.ones(5))
    return Model(ranker, scaler, feature_names=names, kind="trees")


def svm():
    ranker = RankingSVM().build(5)
    ranker.weights += torch.arange(5)
    return Model(ranker, Scaler.fit(FEATURES), kind="svm")


def apart(model, features):
    expected = model.predict(features).astype(np.float64)
    found = scoring_by(plain_model(model))(features)
    size = np.maximum(np.abs(expected), np.sqrt(np.mean(expected**2)))
    return float((np.abs(found - expected) / size).max())


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_networks_score_alike(activation):
    assert apart(network(DNN(hidden=(16, 8), activation=activation)), FEATURES) < ROUNDING


@pytest.mark.parametrize("scaling", KINDS)
def test_scalings_are_alike(scaling):
    assert apart(network(Linear(), scaling), FEATURES * 100) < ROUNDING


def test_the_elu_of_the_paper_and_the_svm_score_alike():
    assert apart(network(DNN(hidden=(16,), elu_output=True)), FEATURES) < ROUNDING
    assert apart(svm(), FEATURES) < ROUNDING


def test_trees_score_the_same_bits_also_where_values_are_missing():
    missing = FEATURES.copy()
    missing[RNG.random(missing.shape) < 0.2] = np.nan
    on_thresholds = RNG.choice(FEATURES[:, 0], FEATURES.shape)
    for features in (FEATURES, missing, on_thresholds):
        assert apart(trees(), features) == 0


class Held:
    def __init__(self, value):
        self.value = value


def batch(features, **changed):
    ids = {"query_id": ["q"] * len(features), "doc_id": [f"d{i}" for i in range(len(features))]}
    columns = {f"f{i}": features[:, i] for i in range(5)}
    return pa.RecordBatch.from_pydict({**ids, **columns, **changed})


def test_batches_become_batches_of_scores():
    model = network(Linear())
    score = scores_of_batches(Held(plain_model(model)), [f"f{i}" for i in range(5)], "here")
    found = list(score(iter([batch(FEATURES[:10]), batch(FEATURES[10:30])])))
    assert [len(each) for each in found] == [10, 20]
    assert found[0].schema.names == ["query_id", "doc_id", "score"]
    assert found[1]["score"].type == pa.float32()
    lists = pa.RecordBatch.from_pydict(
        {"query_id": ["q"] * 5, "doc_id": list("abcde"), "features": FEATURES[:5].tolist()}
    )
    listed = scores_of_batches(Held(plain_model(model)), None, "here")
    assert np.allclose(next(listed(iter([lists])))["score"], found[0]["score"][:5])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.inf, "dualrank: here: age of document 'd1' of query 'q' is infinite; features are fin"),
        (np.nan, "age of document 'd1' of query 'q' is missing; a ranker of kind linear needs all"),
    ],
)
def test_what_cannot_be_scored_is_named(value, said):
    model = network(Linear(), names=("a", "b", "age", "c", "d"))
    features = FEATURES[:3].copy()
    features[1, 2] = value
    score = scores_of_batches(Held(plain_model(model)), [f"f{i}" for i in range(5)], "here")
    with pytest.raises(ValueError) as caught:
        list(score(iter([batch(features)])))
    assert said in str(caught.value)
    if np.isnan(value):
        some = scores_of_batches(Held(plain_model(trees())), [f"f{i}" for i in range(5)], "here")
        assert len(next(some(iter([batch(features)])))) == 3


def test_ids_that_are_missing_and_lists_of_another_length_are_refused():
    plain = Held(plain_model(network(Linear())))
    score = scores_of_batches(plain, [f"f{i}" for i in range(5)], "here")
    with pytest.raises(ValueError, match="dualrank: here: a row has no query_id, or no doc_id"):
        list(score(iter([batch(FEATURES[:2], doc_id=["a", None])])))
    for lists, said in (([[1.0] * 4], "4 features; expected 5"), ([None], "0 features; expected")):
        rows = {
            "query_id": ["q"],
            "doc_id": ["d"],
            "features": pa.array(lists, pa.list_(pa.float32())),
        }
        with pytest.raises(ValueError, match=said):
            list(scores_of_batches(plain, None, "here")(iter([pa.RecordBatch.from_pydict(rows)])))


def test_the_file_needs_numpy_and_pyarrow_alone():
    """What executors get is this file and nothing of the package."""
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] in ('dualrank', 'torch', 'numba', 'scipy'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        f"exec(compile(open({plain_scoring.__file__!r}).read(), 'plain', 'exec'))\n"
        "arrays = dict(kept=np.arange(2), shift=np.zeros(2), scale=np.ones(2))\n"
        "arrays |= {'weight.0': np.ones((1, 2), np.float32), 'bias.0': np.zeros(1, np.float32)}\n"
        "arrays = {k: (v.dtype.str, v.shape, v.tobytes()) for k, v in arrays.items()}\n"
        "plain = dict(arrays=arrays, trees=False, activations=[None], scaling='standard')\n"
        "assert scoring_by(plain)(np.ones((3, 2), np.float32)).tolist() == [2, 2, 2]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
