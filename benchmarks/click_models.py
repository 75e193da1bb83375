"""EM of click models against PyClick and CLAX, and against itself on single sessions.

    python -m benchmarks.click_models [--sessions 3270000]

Every figure is a ratio of two times taken in the same run on one thread. PyClick is timed on a few
sessions, since its time per session does not depend on how many there are. What is not installed
is left out: PyClick (github.com/markovi/PyClick, `pyclick` on PyPI is something else) and CLAX
(clax-models, with jax below 0.8).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

# Before anything imports the libraries that read them.
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.setdefault("XLA_FLAGS", ONE_THREAD)
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from benchmarks.timing import seconds  # noqa: E402
from dualrank.clicks.browsing import ByLastClick, Chain  # noqa: E402
from dualrank.clicks.models.chain_em import ChainCounts  # noqa: E402
from dualrank.clicks.models.click_model import ClickModel  # noqa: E402
from dualrank.clicks.models.comparison import hold_out  # noqa: E402
from dualrank.clicks.models.dbn import _Priors  # noqa: E402
from dualrank.clicks.models.dbn import _step as step  # noqa: E402
from dualrank.clicks.models.em import EM, Beta, Parameters, climb  # noqa: E402
from dualrank.clicks.models.product_em import ProductCounts, fit_product  # noqa: E402
from dualrank.clicks.models.registry import click_model  # noqa: E402
from dualrank.clicks.models.ubm import browsing_counts  # noqa: E402
from dualrank.data.click_log import ClickLog  # noqa: E402
from dualrank.data.lists import RankedLists  # noqa: E402

DEPTH = 10
POOL = 15
REPETITIONS = 5
CLOSE = 1e-3
"""Nats per session: a held-out likelihood that is no further below is taken to be equal."""


def head_queries(queries: int, lists_per_query: int, seed: int = 0) -> RankedLists:
    """Each query shows ten of its fifteen documents, in several orders that are alike."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=(queries, 1, POOL))
    noise = 0.5 * rng.normal(size=(queries, lists_per_query, POOL))
    order = np.argsort(-(quality + noise), axis=2)[:, :, :DEPTH]
    documents = order + np.arange(queries)[:, None, None] * POOL
    owner = np.repeat(np.arange(queries), lists_per_query)
    return RankedLists(documents.reshape(-1, DEPTH).astype(np.int32), owner.astype(np.int32))


def sampled_log(lists: RankedLists, sessions: int, kind: str, seed: int = 0) -> ClickLog:
    """Sessions of `dbn` or `ubm` users; the n-th query is searched for in proportion to 1/n."""
    rng = np.random.default_rng(seed)
    pairs = int(lists.documents.max()) + 1
    attraction = rng.beta(0.6, 2.4, pairs)[lists.documents]
    if kind == "dbn":
        satisfied = rng.beta(2.0, 2.0, pairs)[lists.documents]
        pages: Chain | ByLastClick = Chain(attraction, 0.9 * (1 - satisfied), 0.9)
    else:
        distance = np.arange(1, DEPTH + 1)[:, None] - np.arange(DEPTH + 1)
        pages = ByLastClick(attraction, np.maximum(distance, 1) ** -0.6)
    share = 1.0 / (lists.queries + 1.0)
    chosen = rng.choice(len(lists), sessions, p=share / share.sum()).astype(np.int32)
    clicks = np.concatenate(
        [pages.take(part).sample(rng) for part in np.array_split(chosen, 1 + sessions // 200_000)]
    )
    return ClickLog.from_clicks(lists, chosen, clicks)


def single_sessions(log: ClickLog, count: int, seed: int = 0) -> ClickLog:
    """Some sessions as rows of their own, each with a list of its own: nothing is grouped."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(log.counts), count, p=log.counts / log.sessions)
    shown = log.list_of[rows]
    return replace(
        log,
        lists=RankedLists(log.lists.documents[shown], log.lists.queries[shown]),
        list_of=np.arange(count, dtype=np.int32),
        clicks=log.clicks[rows],
        counts=np.ones(count, dtype=np.int64),
    )


def ubm_iteration(counts: ProductCounts, iterations: int = 10) -> float:
    """Seconds of one iteration of the user browsing model."""
    prior, em = Beta(0.1, 0.9, 0.1), EM(iterations, 0.0, accelerated=False)
    return seconds(lambda: fit_product([counts], prior, em)) / iterations


def ungrouped(log: ClickLog) -> ProductCounts:
    """Counts of the user browsing model with an entry for every displayed document."""
    fine = browsing_counts(log)
    entries = (fine.clicks + fine.skips).astype(int)
    pair = np.repeat(fine.pair, entries)
    clicked = np.concatenate([np.arange(n) < c for n, c in zip(entries, fine.clicks, strict=True)])
    return ProductCounts(
        np.searchsorted(pair, np.arange(fine.pairs + 1)),
        np.repeat(fine.cell, entries),
        clicked.astype(float),
        (~clicked).astype(float),
        fine.cells,
    )


def dbn_iteration(counts: ChainCounts, iterations: int = 10) -> float:
    """Seconds of one iteration of the dynamic Bayesian network."""
    prior, pairs = Beta(0.1, 0.9, 0.1), len(counts.clicks)
    start = Parameters([(np.full(pairs, 0.2), np.full(pairs, 0.5))], (np.array([0.9]),))
    em, priors = EM(iterations, 0.0, accelerated=False), _Priors(prior, prior)
    return seconds(lambda: climb(partial(step, [counts], priors), start, em)) / iterations


def pyclick_iteration(kind: str, log: ClickLog, count: int) -> float:
    """Seconds per session of one iteration of PyClick."""
    from pyclick.click_models.DBN import DBN
    from pyclick.click_models.Inference import EMInference
    from pyclick.click_models.UBM import UBM
    from pyclick.search_session.SearchResult import SearchResult
    from pyclick.search_session.SearchSession import SearchSession

    part = single_sessions(log, count)
    sessions = []
    for documents, clicks in zip(part.lists.documents, part.clicks, strict=True):
        session = SearchSession("q")
        session.web_results = [
            SearchResult(int(d), int(c)) for d, c in zip(documents, clicks, strict=True)
        ]
        sessions.append(session)
    model = {"ubm": UBM, "dbn": DBN}[kind](EMInference(1))
    return seconds(lambda: model.train(sessions)) / count


def report(name: str, ratios: list[float], limit: float) -> bool:
    """Print the median of ratios and whether it reaches the limit."""
    ratio, (low, high) = float(np.median(ratios)), np.quantile(ratios, [0.25, 0.75])
    print(
        f"{name:<58}{ratio:9.0f} × (quartiles {low:.0f} to {high:.0f})   at least {limit:g} ×: "
        f"{'holds' if ratio >= limit else 'FAILS'}",
        flush=True,
    )
    return ratio >= limit


def iterations(sessions: int) -> bool:
    """One iteration over a large log, against PyClick and against the same kernel on sessions."""
    results = []
    lists = head_queries(6_000, 5)
    for kind, sample, limit in (("ubm", 1_000, 1_500.0), ("dbn", 60, 5_000.0)):
        log = sampled_log(lists, sessions, kind)
        raw = single_sessions(log, sessions // 10)
        if kind == "ubm":
            grouped, single = browsing_counts(log), ungrouped(raw)
            print(f"\n{kind}: {log}, {len(grouped.cell)} groups")
            ours = [ubm_iteration(grouped) for _ in range(REPETITIONS + 1)][1:]
            alone = [ubm_iteration(single, 2) * 10 for _ in range(REPETITIONS + 1)][1:]
        else:
            chain, chain_raw = ChainCounts.of_documents(log), ChainCounts.of_documents(raw)
            print(f"\n{kind}: {log}")
            ours = [dbn_iteration(chain) for _ in range(REPETITIONS + 1)][1:]
            alone = [dbn_iteration(chain_raw, 2) * 10 for _ in range(REPETITIONS + 1)][1:]
        print(
            f"one iteration: {np.median(ours) * 1e3:.1f} ms, "
            f"{np.median(ours) / sessions * 1e9:.1f} ns per session"
        )
        ratios = [theirs / mine for mine, theirs in zip(ours, alone, strict=True)]
        by_itself = 10.0 if kind == "dbn" else 1.0
        results.append(report(f"{kind} against the same kernel on sessions", ratios, by_itself))
        if has("pyclick.click_models"):
            peer = [pyclick_iteration(kind, log, sample) for _ in range(REPETITIONS)]
            print(f"PyClick: {np.median(peer) * 1e6:.0f} µs per session")
            ratios = [theirs * sessions / mine for mine, theirs in zip(ours, peer, strict=True)]
            results.append(report(f"{kind} against PyClick, per session", ratios, limit))
    return all(results)


def clax_batches(
    log: ClickLog, size: int, rng: np.random.Generator
) -> Iterator[dict[str, NDArray[Any]]]:
    """Shuffled sessions as CLAX wants them, already in memory."""
    rows = rng.permutation(np.repeat(np.arange(len(log.counts)), log.counts))
    positions = np.broadcast_to(np.arange(1, DEPTH + 1), (size, DEPTH))
    for start in range(0, len(rows) - size + 1, size):
        part = rows[start : start + size]
        yield {
            "query_doc_ids": log.lists.documents[log.list_of[part]],
            "positions": positions,
            "clicks": log.clicks[part].astype(np.float32),
            "mask": np.ones((size, DEPTH), dtype=bool),
        }


def against_clax(kind: str, sessions: int, epochs: int = 25) -> bool:
    """Time until the likelihood of held-out sessions is that of our fit, compilation left out.

    CLAX has the settings of its README (AdamW at 0.003, batches of 512) and no cost for reading
    data. Its time is that of its training steps alone, ours is all of `fit`.
    """
    import jax.numpy as jnp
    from clax import Trainer
    from clax.metrics import Average, MultiMetric
    from clax.models import (
        DynamicBayesianNetwork,
        PositionBasedModel,
        UserBrowsingModel,
    )
    from flax import nnx
    from optax import adamw

    lists = head_queries(1_000, 5)
    whole = sampled_log(lists, sessions, "ubm" if kind == "ubm" else "dbn")
    train, test = (part.read() for part in hold_out(whole, 0.2, 0))
    model: ClickModel = click_model(kind)
    model.fit(train)
    mine = float(np.median([seconds(lambda: model.fit(train)) for _ in range(REPETITIONS)]))
    target = model.log_likelihood(test) / test.sessions

    pairs = int(lists.documents.max()) + 1
    makers: dict[str, Callable[[], object]] = {
        "pbm": lambda: PositionBasedModel(DEPTH + 1, pairs, rngs=nnx.Rngs(0)),
        "ubm": lambda: UserBrowsingModel(DEPTH + 1, pairs, rngs=nnx.Rngs(0)),
        "dbn": lambda: DynamicBayesianNetwork(pairs, rngs=nnx.Rngs(0)),
    }
    peer, trainer = makers[kind](), Trainer(adamw(0.003))
    optimizer = nnx.ModelAndOptimizer(peer, trainer.optimizer)
    metrics = MultiMetric({"loss": Average("loss")})
    tested = next(clax_batches(test, test.sessions, np.random.default_rng(1)))
    loss = nnx.jit(lambda m, batch: m.compute_loss(batch).mean())
    rng = np.random.default_rng(0)
    warm = next(clax_batches(train, 512, rng))
    trainer._train_step(peer, optimizer, metrics, warm)
    theirs, best, time_of_best = 0.0, -np.inf, 0.0
    for _ in range(epochs):
        batches = [{k: jnp.asarray(v) for k, v in b.items()} for b in clax_batches(train, 512, rng)]
        start = time.perf_counter()
        for batch in batches:
            trainer._train_step(peer, optimizer, metrics, batch)
        value = -DEPTH * float(loss(peer, tested))
        theirs += time.perf_counter() - start
        if value > best:
            best, time_of_best = value, theirs
        if value >= target - CLOSE or value < best - CLOSE:
            break
    reached = best >= target - CLOSE
    print(
        f"\n{kind}: {train} to fit on; held-out log-likelihood per session: ours {target:.4f} "
        f"after {mine:.2f} s ({model.fitted.climb.iterations} iterations), CLAX {best:.4f} after "
        f"{time_of_best:.1f} s" + ("" if reached else ", its best")
    )
    return report(f"{kind} against CLAX, to equal held-out likelihood", [time_of_best / mine], 5.0)


def has(module: str) -> bool:
    """Whether a peer is installed."""
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def main() -> bool:
    """Print every comparison; true if all limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sessions", type=int, default=3_270_000)
    parser.add_argument("--clax-sessions", type=int, default=200_000)
    options = parser.parse_args()
    results = [iterations(options.sessions)]
    if not has("pyclick.click_models"):
        print("PyClick is not installed")
    if has("clax"):
        results += [against_clax(kind, options.clax_sessions) for kind in ("pbm", "ubm", "dbn")]
    else:
        print("CLAX is not installed")
    return all(results)


if __name__ == "__main__":
    sys.exit(not main())
