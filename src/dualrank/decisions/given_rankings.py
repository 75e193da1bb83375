"""What users name as a ranker: a model, its directory, a run of any search engine, or scores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.inputs import scores_from
from dualrank.data.runs import is_run, read_run
from dualrank.errors import DataError
from dualrank.evaluation.click_check import hold_out
from dualrank.learning.model import Model
from dualrank.learning.whole_source import fingerprint

LOGGED = "logged"


@dataclass(frozen=True, eq=False)
class Given:
    """A ranker by its name, with the scores of every document, and the model if it is one.

    What the log itself displayed has neither.
    """

    name: str
    scores: NDArray[np.float64] | None = None
    model: Model | None = None


def scores_of(ranker: Any, dataset: Dataset, name: str) -> Given:
    """The scores of a ranker; `name` is for one that has no name of its own."""
    if isinstance(ranker, str) and ranker == LOGGED:
        return Given(LOGGED)
    if isinstance(ranker, str | Path):
        path, name = Path(ranker), Path(ranker).name or name
        if is_run(path):
            return Given(name, _checked(read_run(path, dataset), dataset, name))
        ranker = Model.load(path)
    if isinstance(ranker, Model):
        _require_same_features(ranker, dataset, name)
        scores = ranker.predict(dataset)
        return Given(name, _checked(scores, dataset, name), ranker)
    return Given(name, _checked(scores_from(ranker, dataset, None), dataset, name))


def _require_same_features(model: Model, dataset: Dataset, name: str) -> None:
    known = model.scaler.input_count
    named = model.feature_names is not None and dataset.feature_names is not None
    if not named and known != dataset.feature_count:
        raise DataError(
            f"{name} was trained on {known} features, and {dataset.source} has "
            f"{dataset.feature_count}; give the features that it knows"
        )
    # Text leaves out zeros, so that a file of few features looks like one of many.
    filled = np.flatnonzero(dataset.features.any(axis=0))
    empty = len(np.setdiff1d(model.scaler.kept, filled))
    if not named and 2 * empty > len(model.scaler.kept):
        raise DataError(
            f"{empty} of the {len(model.scaler.kept)} features that {name} ranks by are 0 in all "
            f"of {dataset.source}; give the features that it knows"
        )


def _checked(scores: Any, dataset: Dataset, name: str) -> NDArray[np.float64]:
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (dataset.document_count,):
        raise DataError(
            f"the scores of {name} have shape {values.shape}, but there are "
            f"{dataset.document_count} documents"
        )
    known = values[np.isfinite(values)]
    if len(known) == 0:
        raise DataError(f"{name} ranks none of the documents of {dataset.source}")
    if known.min() == known.max() and np.isfinite(values).all():
        raise DataError(f"{name} gives every document the same score: it ranks nothing")
    return values


def unseen_queries(
    log: ClickLog, dataset: Dataset, rankers: tuple[Given, ...]
) -> tuple[ClickLog, list[str]]:
    """The part of a log that no ranker was trained on, and what there is to say about it.

    A ranker that was trained on this very log has seen its clicks, and would be judged by them; but
    of its queries it held some out, which the seed of its training gives again.
    """
    notes = []
    kept = np.ones(len(log.lists), dtype=bool)
    for ranker in rankers:
        training = {} if ranker.model is None else ranker.model.training
        if training.get("data") is None:
            continue
        # Which context the digest holds is not known to the log.
        digests = [fingerprint(log, dataset, None)]
        digests += [fingerprint(log, dataset, name) for name in log.columns]
        if training["data"] not in digests:
            continue
        held = _held_out(log, training)
        if held is None:
            notes.append(
                f"{ranker.name} was trained on this log and held no queries out: it is judged by "
                "clicks that it was trained on, which flatters it."
            )
            continue
        kept &= np.isin(log.lists.queries, held)
        notes.append(
            f"{ranker.name} was trained on this log, and is judged on the queries that it held out."
        )
    if kept.all():
        return log, notes
    return log.take_lists(np.flatnonzero(kept)), notes


def ranked_queries(
    log: ClickLog, dataset: Dataset, rankers: tuple[Given, ...]
) -> tuple[ClickLog, list[str]]:
    """The part of a log whose queries every ranker ranks, and what there is to say about it.

    A run may leave queries out, of which nothing is known then, and documents, which it does not
    show.
    """
    notes = []
    kept = np.ones(len(log.lists), dtype=bool)
    sessions = log.sessions_per_list
    for ranker in rankers:
        if ranker.scores is None:
            continue
        ranked = np.bincount(dataset.query_of_document, ranker.scores > -np.inf, len(dataset))
        of_list = ranked[log.lists.queries]
        some = of_list > 0
        if not some.all():
            asked, known = (len(np.unique(log.lists.queries[rows])) for rows in (..., some))
            notes.append(
                f"{ranker.name} ranks {known:,} of {asked:,} queries to judge by: the others are "
                "left out."
            )
        short = sessions[some & (of_list < log.lists.mask.sum(axis=1))].sum()
        if short:
            notes.append(
                f"{ranker.name} has fewer documents than were displayed in "
                f"{short / sessions[some].sum():.0%} of sessions: it is taken to show no more."
            )
        kept &= some
    return (log if kept.all() else log.take_lists(np.flatnonzero(kept))), notes


def _held_out(log: ClickLog, training: dict[str, Any]) -> NDArray[np.int32] | None:
    share, seed = training.get("validation"), training.get("settings", {}).get("seed")
    if not isinstance(share, int | float) or not 0 < share < 1 or not isinstance(seed, int):
        return None
    _, held = hold_out(log, float(share), seed)
    return None if held is None else np.unique(held.lists.queries)
