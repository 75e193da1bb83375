"""All export targets, by the name that the command line knows them by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dualrank.data.inputs import dataset_from, log_and_dataset
from dualrank.engines.debiased_labels import to_letor
from dualrank.engines.elasticsearch import to_elasticsearch
from dualrank.engines.lightgbm_model import to_lightgbm
from dualrank.engines.onnx import to_onnx
from dualrank.engines.opensearch import to_opensearch
from dualrank.engines.solr import to_solr
from dualrank.engines.target import Export, Target, Written
from dualrank.engines.vespa import to_vespa
from dualrank.engines.xgboost_model import to_xgboost
from dualrank.errors import SettingsError
from dualrank.learning.model import Model
from dualrank.progress import shows_progress

TARGETS: dict[str, Target] = {
    "onnx": to_onnx,
    "opensearch": to_opensearch,
    "elasticsearch": to_elasticsearch,
    "solr": to_solr,
    "vespa": to_vespa,
    "lightgbm": to_lightgbm,
    "xgboost": to_xgboost,
    "letor": to_letor,
}


@shows_progress("writing the export")
def export(model: Model, to: str | Target, out: str | Path, **given: Any) -> Written:
    """Write a model for another program; what else is given are the fields of `Export`.

    `to` names a target, or is one: a function from `Export` to `Written`. `documents` and `log` may
    be files or data frames.

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> model = dr.fit(log, data.train, method="naive", ranker=dr.Trees(), steps=20)
    >>> with TemporaryDirectory() as folder:
    ...     written = dr.export(model, "lightgbm", f"{folder}/model.txt")
    ...     first = Path(folder, "model.txt").read_text().splitlines()[0]
    >>> first
    'tree'
    """
    if isinstance(to, str):
        if to not in TARGETS:
            raise SettingsError(f"there is no target {to!r}; there are {', '.join(TARGETS)}")
        to = TARGETS[to]
    documents, log = given.get("documents"), given.get("log")
    if documents is not None:
        known = {"names": model.feature_names, "count": model.scaler.input_count}
        documents = dataset_from(documents, **known).with_features(model.feature_names)
        given["documents"] = documents
    if log is not None:
        given["log"] = log_and_dataset(log, documents)[0]
    return to(Export(model, Path(out), **given))
