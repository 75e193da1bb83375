"""Whether the tutorials end as printed by luck: the same steps on seeds that are not printed.

    python -m benchmarks.tutorials [warehouse|few|web|mixed …] [--seeds 5] [--first-seed 1]

- `warehouse`: docs/from-warehouse-to-model.md, 8,000 queries and 300,000 sessions;
- `few`: the end of that page, 600 queries and 2,000 sessions, where clicks are too few;
- `web`: docs/pages-and-features.md, the generated web, 800 queries, users who look by position;
- `mixed`: the same page with what `generate-web` has by default, fewer sessions and users of five
  kinds.

A line for every seed: nDCG@10 on judged queries that nobody clicked on, of the ranker that made
the log (today), of one trained without correction (naive) and of what `dualrank train` makes
(model); by how much the model leads both, with the p-value of Fisher's randomisation test; and by
how many standard errors `train` itself says that it is ahead of naive on held-out clicks.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import dualrank as dr
from dualrank.data import Scaler
from dualrank.pages import FEATURE_NAMES
from dualrank.reproduce.search_engine import Log, display, simulate_log, users_of
from dualrank.reproduce.simulation import rank_initially, train_initial_ranker
from dualrank.reproduce.text_collection import TextCollection, engine_scores

METRIC = "ndcg@10"
NETWORK = dr.DNN((64, 32))
Story = tuple[Any, Any, dr.Dataset, NDArray[Any], dict[str, Any]]
"""A log, the features of its documents, judged queries, today's scores of these, and options."""


def warehouse(seed: int, preset: str = "laptop", sessions: int = 300_000, lists: int = 4) -> Story:
    """What `dualrank generate` and `dualrank simulate` write."""
    data = dr.generate_splits(preset, seed=seed)
    shown = rank_initially(data.train, seed, rankings=lists)
    rng = np.random.default_rng([seed, 0x_C11C])
    log = dr.sample_log(data.train, shown, dr.PositionBasedUser(), sessions, rng)
    scaler = Scaler.fit(data.train.features, kind="standard")
    scaled = replace(data.train, features=scaler.transform(data.train.features))
    today = train_initial_ranker(scaled, seed).score(scaler.transform(data.test.features))
    return log, data.train, data.test, today, {}


def few(seed: int) -> Story:
    """The same, too small."""
    return warehouse(seed, "tiny", 2_000, 1)


def web(seed: int, sessions: int = 50, user: str = "pbm") -> Story:
    """What `dualrank generate-web` writes, with the features of the pages that were displayed."""
    data = display(TextCollection().load(seed), seed)
    log = simulate_log(data, users_of(user), Log(sessions, popularity=True), seed)
    train, shown = data.train, np.unique(data.lists.documents[data.lists.mask])
    features = {name: train.features[shown, i] for i, name in enumerate(FEATURE_NAMES)}
    named = {
        "query_id": train.query_ids[train.query_of_document][shown],
        "doc_id": train.ids_of_documents()[shown],
    }
    table = pa.table(named | features)
    return log.to_table(), table, data.test, engine_scores(data.test), {"scaling": "log"}


def mixed(seed: int) -> Story:
    """The same by users for whom no curve by position holds."""
    return web(seed, 20, "mixed")


STORIES: dict[str, Callable[[int], Story]] = {
    "warehouse": warehouse,
    "few": few,
    "web": web,
    "mixed": mixed,
}


def line(story: Story, seed: int) -> str:
    """Train, and compare on judged queries."""
    log, train, judged, today, options = story
    with tempfile.TemporaryDirectory() as folder:
        found = dr.train(log, train, folder, ranker=NETWORK, seed=seed, diagnosis=False, **options)
    assert found.naive is not None
    scores = {
        "today": today,
        "naive": found.naive.predict(judged),
        "model": found.model.predict(judged),
    }
    values = {
        name: dr.evaluate_per_query(each, judged, [METRIC])[METRIC] for name, each in scores.items()
    }
    means = "".join(f"{each.mean():8.3f}" for each in values.values())
    leads = ""
    for other in ("naive", "today"):
        lead = values["model"].mean() - values[other].mean()
        p = dr.fisher_test(values["model"], values[other], permutations=10_000).p_value
        leads += f"{lead:+9.3f} {f'p = {p:.4f}':>10}"
    said = found.model.training["auto"]["leads"]["auto"]
    return f"{seed:4}{means}{leads}{said['gain'] / said['error']:10.1f}"


def main() -> None:
    """Print a table for each tutorial."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stories", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1)
    asked = parser.parse_args()
    for name in asked.stories or STORIES:
        print(
            f"{name}\nseed   today   naive   model  model − naive       model − today        said"
        )
        for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
            print(line(STORIES[name](seed), seed), flush=True)


if __name__ == "__main__":
    main()
