"""How far exported models and the models that they were made of are apart.

Run as `python -m benchmarks.exports`. Rankers are trained on simulated clicks, and exported to
every target with 10,000 test documents to compare on, a quarter of which have a value far outside
of the training data, and a quarter, where the ranker is made of trees, missing values; half of the
values that trees look at lie on a threshold or just above. A cell is the largest difference
relative to the score, as `dualrank export` measures it; above 1e-5 nothing would be written.

What no target of this machine can be asked (Solr, OpenSearch, Elasticsearch, Vespa) is computed by
the rules of that engine, from the file. ONNX Runtime, LightGBM and XGBoost are asked themselves.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dualrank as dr
from dualrank.data.dataset import Dataset
from dualrank.engines import TARGETS
from dualrank.rankers.kinds import RANKERS
from dualrank.rankers.ranker import RankerSettings

DOCUMENTS, LIMIT = 10_000, 1e-5
HIDDEN = (64, 32)


def rankers() -> dict[str, tuple[RankerSettings, str, bool]]:
    """Settings, scaling, and whether features have gaps, by what the table calls them."""
    found: dict[str, tuple[RankerSettings, str, bool]] = {
        "linear": (dr.Linear(), "standard", False),
        "linear, minmax": (dr.Linear(), "minmax", False),
        "svm": (dr.RankingSVM(), "standard", False),
        "dnn, elu": (dr.DNN(HIDDEN), "standard", False),
        "dnn, elu, log": (dr.DNN(HIDDEN), "log", False),
        "dnn, relu": (dr.DNN(HIDDEN, activation="relu"), "standard", False),
        "dnn, leaky-relu": (dr.DNN(HIDDEN, activation="leaky-relu"), "standard", False),
        "dnn, tanh": (dr.DNN(HIDDEN, activation="tanh"), "minmax", False),
        "dnn, sigmoid": (dr.DNN(HIDDEN, activation="sigmoid"), "standard", False),
    }
    if "trees" in RANKERS:
        found["trees"] = (RANKERS["trees"](), "none", False)
        found["trees, gaps"] = (RANKERS["trees"](), "none", True)
    return found


def with_gaps(data: Dataset) -> Dataset:
    """A tenth of the values missing."""
    features = data.features.copy()
    features[np.random.default_rng(0).random(features.shape) < 0.1] = np.nan
    return replace(data, features=features)


def train(ranker: RankerSettings, scaling: str, data: Dataset) -> dr.Model:
    """A few steps on simulated clicks: what the ranker is worth does not matter."""
    plain = replace(data, features=np.nan_to_num(data.features))
    lists = dr.top_lists(plain, plain.features[:, 0], 10)
    rng = np.random.default_rng(0)
    log = dr.sample_log(plain, lists, dr.PositionBasedUser(), 20_000, rng)
    steps: dict[str, Any] = {} if ranker.makes.at_once else {"steps": 100}
    return dr.fit(
        log, data, method="naive", ranker=ranker, scaling=scaling, validation=0.0, **steps
    )


def main() -> int:
    """Print the table; 1 if a difference is above the limit."""
    splits = dr.generate_splits(seed=0)
    targets = [name for name in TARGETS if name != "letor"]
    print(f"{'':<17}" + "".join(f"{name:>15}" for name in targets))
    refused: dict[str, None] = {}
    failed = False
    for name, (settings, scaling, gaps) in rankers().items():
        train_data, test = splits.train, splits.test
        if gaps:
            train_data, test = with_gaps(train_data), with_gaps(test)
        model = train(settings, scaling, train_data)
        rows = np.resize(np.arange(test.document_count), DOCUMENTS)
        documents = Dataset.from_arrays(test.features[rows], np.arange(DOCUMENTS))
        cells = []
        for target in targets:
            trees = model.ranker.forest() is not None
            suffix = ".onnx" if target == "onnx" or (target == "vespa" and not trees) else ".json"
            with tempfile.TemporaryDirectory() as folder:
                try:
                    out = Path(folder) / f"model{suffix}"
                    written = dr.export(model, target, out, documents=documents, seed=1)
                    cells.append(f"{written.facts['max_difference']:.1e}")
                    failed |= not written.facts["max_difference"] <= LIMIT
                except dr.DualrankError as error:
                    cells.append("–")
                    failed |= "not written" in str(error)
                    refused[str(error)] = None
        print(f"{name:<17}" + "".join(f"{cell:>15}" for cell in cells), flush=True)
    print(f"\nat most {LIMIT:g}: {'FAILS' if failed else 'holds'}\n\nrefused:")
    for sentence in refused:
        print(f"- {sentence}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
