"""A training step against its own matrix products, and what a checkpoint adds.

Run as `python -m benchmarks.training`. The floor of a step is the time of its matrix products
alone, with the same BLAS on one thread: forward, and backward for weights and hidden layers. Every
figure is the median ratio of times taken in turn in the same run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from benchmarks.timing import seconds
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.corrections import DualLearning, Naive
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.learning import Loop, SimulatedClicks
from dualrank.learning.checkpoint import write_checkpoint
from dualrank.rankers import DNN, Batch
from dualrank.settings import TrainingSettings

LISTS, DEPTH, POOL = 256, 10, 4_000


def compare(
    name: str,
    ours: Callable[[], object],
    floor: Callable[[], object],
    *,
    limit: float,
    repetitions: int,
) -> bool:
    """Print the median of ours/floor."""
    for _ in range(3):
        ours(), floor()
    pairs = np.array([(seconds(ours), seconds(floor)) for _ in range(repetitions)])
    ratios = pairs[:, 0] / pairs[:, 1]
    low, ratio, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    step, products = np.median(pairs, axis=0)
    print(
        f"{name:<58}{step * 1e3:8.2f} ms{products * 1e3:9.2f} ms{ratio:7.3f} "
        f"(quartiles {low:.3f} to {high:.3f})   at most {limit:.3f}: "
        f"{'holds' if ratio <= limit else 'FAILS'}"
    )
    return bool(ratio <= limit)


def matrix_products(features: int, hidden: tuple[int, ...]) -> Callable[[], None]:
    """The matrix products of a step over all lists, in buffers made beforehand."""
    rows, sizes = LISTS * DEPTH, (features, *hidden, 1)
    h = [torch.rand(rows, size) for size in sizes]
    d = [torch.rand(rows, size) for size in sizes]
    weights = [torch.rand(b, a) for a, b in pairwise(sizes)]
    gradients = [torch.empty_like(weight) for weight in weights]

    def floor() -> None:
        for layer, weight in enumerate(weights):
            torch.mm(h[layer], weight.t(), out=h[layer + 1])
        for layer in reversed(range(len(weights))):
            torch.mm(d[layer + 1].t(), h[layer], out=gradients[layer])
            if layer:
                torch.mm(d[layer + 1], weights[layer], out=d[layer])

    return floor


class EveryListClicked:
    """Simulated clicks in which no list goes without one."""

    def __init__(self, clicks: SimulatedClicks) -> None:
        self.lists = clicks.lists

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """Clicks at random, and one on the first position always."""
        chosen = rng.integers(len(self.lists), size=size)
        labels = (rng.random((size, DEPTH)) < 0.2).astype(np.float32)
        labels[:, 0] = 1
        return Batch(self.lists.documents[chosen], labels, size)


def loop(
    features: int,
    hidden: tuple[int, ...],
    *,
    every_list: bool,
    dual: bool = True,
    precision: str = "float32",
) -> Loop:
    """Dual learning, or naive training, on random documents with the grades of a web search."""
    rng = np.random.default_rng(0)
    grades = rng.choice(5, POOL * DEPTH, p=[0.26, 0.36, 0.28, 0.08, 0.02])
    matrix = rng.standard_normal((POOL * DEPTH, features), dtype=np.float32)
    data = Dataset.from_arrays(matrix, np.repeat(np.arange(POOL), DEPTH), grades)
    documents = np.arange(POOL * DEPTH, dtype=np.int32).reshape(POOL, DEPTH)
    lists = RankedLists(documents, np.arange(POOL, dtype=np.int32))
    clicks = SimulatedClicks(data, lists, PositionBasedUser())
    settings = TrainingSettings(batch_size=LISTS)
    return Loop(
        DNN(hidden, precision=precision).build(features),  # type: ignore[arg-type]
        torch.from_numpy(data.features),
        EveryListClicked(clicks) if every_list else clicks,
        DualLearning(DEPTH, settings) if dual else Naive(),
        settings,
    )


def clicked_share(run: Loop) -> float:
    """The share of lists with a click among those drawn so far."""
    return run.history.clicked / run.history.drawn


def has_bfloat16() -> bool:
    """Whether this processor multiplies matrices in bfloat16."""
    flags = Path("/proc/cpuinfo")
    return flags.exists() and any(
        name in flags.read_text() for name in ("avx512_bf16", "amx_bf16", " bf16")
    )


def main() -> bool:
    """Print every comparison; true if all limits hold."""
    torch.set_num_threads(1)
    paper, small = (700, (512, 256, 128)), (33, (128,))
    floor, small_floor = matrix_products(*paper), matrix_products(*small)
    every, sampled = (loop(*paper, every_list=flag) for flag in (True, False))
    for _ in range(20):
        sampled.step()
    share = clicked_share(sampled)
    print(f"{LISTS} lists × {DEPTH} documents; {share:.2f} of the lists are clicked")
    print(f"{'':<58}{'ours':>11}{'floor':>12}{'ratio':>7}")
    results = [
        compare("step, 700 features, 512-256-128", every.step, floor, limit=1.15, repetitions=41),
        compare(
            "the same, clicks sampled first",
            sampled.step,
            floor,
            limit=1.15 * share,
            repetitions=41,
        ),
        *(
            compare(
                f"step, 33 features, 128, {name}",
                loop(*small, every_list=True, dual=dual).step,
                small_floor,
                limit=2.6,
                repetitions=301,
            )
            for name, dual in (("naive", False), ("dual learning", True))
        ),
    ]
    if has_bfloat16():
        low = loop(*paper, every_list=True, precision="bfloat16")
        results.append(
            compare("the paper's step in bfloat16", low.step, floor, limit=0.65, repetitions=41)
        )
    else:
        print("bfloat16: not measured, this processor does not have it")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.safetensors"
        results.append(
            compare(
                "checkpoint of the paper's size against a step",
                lambda: write_checkpoint(path, every.state(1, {})),
                every.step,
                limit=0.15,
                repetitions=41,
            )
        )
    return all(results)


if __name__ == "__main__":
    sys.exit(not main())
