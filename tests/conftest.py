"""Small problems, and invented results of the shape and size of real ones, for several rooms."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, top_lists
from dualrank.report.results import PropensityResult, Results, Run

from .waiting import PATIENCE

LONGEST = (
    "docs/test_printed_blocks.py",
    "cli/test_commands.py",
    "docs/test_site.py",
    "online/page/test_demo_in_a_browser.py",
    "fuzz/test_slice.py",
)
"""Files of tests that take more than ten seconds, longest first."""
TRUTH = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06]) / 0.68
NDCG = {
    "initial": 0.669,
    "naive": 0.686,
    "randlist": 0.724,
    "dla": 0.722,
    "oracle": 0.738,
    "svm-naive": 0.680,
    "svm-randlist": 0.700,
}
SHIFT = {
    "map": 0.09,
    "ndcg@1": -0.07,
    "err@1": -0.39,
    "ndcg@3": -0.06,
    "err@3": -0.31,
    "ndcg@5": -0.04,
    "err@5": -0.29,
    "ndcg@10": 0.0,
    "err@10": -0.28,
}


def pytest_configure() -> None:
    """Let SIGINT interrupt: a script's background job ignores it, and so would all it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files: one that begins last leaves the other worker idle."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def make_results(
    seeds: int = 5, ndcg: dict[str, float] | None = None, significant: bool = True, **settings: Any
) -> Results:
    """Results of an oracle-mode experiment; `ndcg` are the means of nDCG@10 by method."""
    rng = np.random.default_rng(7)
    means = NDCG if ndcg is None else ndcg
    noise = rng.normal(size=(len(means), seeds))
    noise -= noise.mean(axis=1, keepdims=True)
    runs = []
    for i, (method, mean) in enumerate(means.items()):
        for seed in range(seeds):
            value = mean + 0.003 * noise[i, seed]
            propensity, curve = None, {}
            if method == "dla":
                propensity = _propensity(TRUTH**0.96 * np.exp(0.05 * rng.normal(size=10)))
            elif method.endswith("randlist"):
                propensity = _propensity(
                    TRUTH * np.exp(0.01 * np.random.default_rng(seed).normal(size=10))
                )
            if method not in ("initial", "svm-naive", "svm-randlist"):
                steps = np.arange(0, 3001, 200)
                rise = 1 - np.exp(-steps / 600)
                values = 0.6 + (value - 0.6) * rise + 0.001 * rng.normal(size=len(steps))
                curve = {"curve": {"steps": steps.tolist(), "ndcg@10": values.tolist()}}
            runs.append(
                Run(
                    method=method,
                    seed=seed,
                    metrics={metric: value + shift for metric, shift in SHIFT.items()},
                    propensity=propensity,
                    seconds=11.5 + i,
                    **curve,
                )
            )
    return Results(
        experiment="oracle-mode",
        settings={
            "data": "generated web-search-shaped data, world 1, 64 features",
            "queries": {"train": 8000, "valid": 800, "test": 2000},
            "documents": 259_318,
            "features": 64,
            "steps": 3000,
            "batch_size": 256,
            "seeds": list(range(seeds)),
            "eta": 1.0,
            "epsilon": 0.1,
            "true_examination": TRUTH.tolist(),
            "ranker": "DNN 512-256-128, ELU",
            "command": f"dualrank reproduce oracle-mode --seeds {seeds}",
            "version": "0.1.0",
            **settings,
        },
        runs=runs,
        significance=significance(means, significant) if "dla" in means else {},
    )


def significance(means: dict[str, float], significant: bool = True) -> dict[str, Any]:
    """What the randomisation test would say: small differences are not significant."""
    others = [method for method in means if method != "dla"]
    difference = {m: dict.fromkeys(SHIFT, means[m] - means["dla"]) for m in others}
    p = {
        m: dict.fromkeys(
            SHIFT, 1e-5 if significant and abs(means[m] - means["dla"]) > 0.003 else 0.31
        )
        for m in others
    }
    return {
        "reference": "dla",
        "test": "fisher",
        "alpha": 0.05,
        "permutations": 100_000,
        "p_values": p,
        "difference": difference,
    }


def make_sweep(seeds: int = 3) -> Results:
    """Results of three methods at five values of η."""
    rng = np.random.default_rng(3)
    ndcg = {
        "naive": [0.730, 0.690, 0.682, 0.676, 0.673],
        "randlist": [0.425, 0.450, 0.725, 0.691, 0.679],
        "dla": [0.729, 0.727, 0.722, 0.717, 0.711],
    }
    mse = {"randlist": [23, 13, 0.001, 120, 2045], "dla": [0.004, 0.02, 0.13, 1, 6]}
    runs = []
    for method, means in ndcg.items():
        for i, eta in enumerate([0, 0.5, 1, 1.5, 2]):
            for seed in range(seeds):
                propensity = None
                if method in mse:
                    error = mse[method][i] * np.exp(0.3 * rng.normal())
                    propensity = PropensityResult(examination=TRUTH.tolist(), mse=error)
                value = means[i] + 0.004 * rng.normal()
                runs.append(
                    Run(
                        method=method,
                        seed=seed,
                        metrics={"ndcg@10": value, "err@10": value - 0.28},
                        propensity=propensity,
                        seconds=10,
                        eta=eta,
                    )
                )
    return Results(experiment="realistic-mode", settings={"seeds": list(range(seeds))}, runs=runs)


def _propensity(examination: np.ndarray) -> PropensityResult:
    curve = examination / examination[0]
    mse = float(np.mean((1 / curve - 1 / TRUTH) ** 2))
    return PropensityResult(examination=curve.tolist(), mse=mse)


@pytest.fixture
def results() -> Results:
    return make_results()


@pytest.fixture(scope="session")
def make() -> Callable[..., Results]:
    return make_results


@pytest.fixture
def sweep() -> Results:
    return make_sweep()


def graded_dataset(queries=60, features=5, seed=0, lengths=(1, 9)):
    """Queries of different lengths whose grades depend on the first two features."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(*lengths, queries)
    X = rng.normal(size=(counts.sum(), features)).astype(np.float32)
    utility = X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=len(X))
    grades = np.digitize(utility, [-0.3, 0.5, 1.2, 1.8])
    return Dataset.from_arrays(X, np.repeat(np.arange(queries), counts), grades, max_grade=4)


@pytest.fixture(scope="session")
def make_dataset():
    return graded_dataset


@pytest.fixture(scope="session")
def dataset():
    return graded_dataset()


@pytest.fixture(scope="session")
def lists(dataset):
    """Lists of at most six documents in the order of a poor ranker; some are shorter."""
    return top_lists(dataset, dataset.features[:, 0], depth=6)


@pytest.fixture(scope="session")
def user():
    return PositionBasedUser()


@pytest.fixture(scope="session")
def log(dataset, lists, user):
    return sample_log(dataset, lists, user, 4_000, np.random.default_rng(3))


@pytest.fixture(scope="session")
def show():
    """Lists as corrections see them, of labels and a mask, each showing documents of its own."""
    import torch

    from dualrank.rankers.batch import Batch

    def show(labels, mask=None, contexts=None):
        labels = np.asarray(labels)
        documents = np.arange(labels.size, dtype=np.int32).reshape(labels.shape)
        if mask is not None:
            documents = np.where(np.asarray(mask), documents, PADDING).astype(np.int32)
        contexts = None if contexts is None else np.asarray(contexts)
        return Batch(documents, labels, len(labels), contexts).to(torch.device("cpu"))

    return show


@pytest.fixture(scope="session")
def in_shards(tmp_path_factory):
    """A log with the names of its documents, and the same in so many shards."""
    from dataclasses import replace

    from dualrank.data.log.reading_report import ReadingReport
    from dualrank.data.shards.splitting import write_shards

    def in_shards(log, dataset, shards=5, *, features=False):
        clicks = int(log.clicks_per_list.sum())
        reading = ReadingReport("the log", clicks, log.sessions, log.sessions, clicks)
        shown = log.take_lists(np.unique(log.list_of))
        named = replace(shown, catalogue=dataset.catalogue, reading=reading)
        folder = tmp_path_factory.mktemp("shards") / "log"
        return named, write_shards(named, folder, shards, dataset if features else None)

    return in_shards


# For a module alone: while it is open, an event loop runs, and others could not start theirs.
@pytest.fixture(scope="module")
def browser():
    """A real browser, which calls nobody by itself."""
    chromium = which("chromium") or which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed: the page is not tried in a browser")
    playwright = pytest.importorskip("playwright.sync_api")
    quiet = ("background-networking", "component-update", "sync", "gpu")
    flags = ["--headless", "--no-sandbox", *(f"--disable-{each}" for each in quiet)]
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(
            executable_path=chromium, args=flags, timeout=1_000 * PATIENCE
        )
        yield opened
        opened.close()
