"""Debiased clicks in the place of grades, for learners that train on labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.letor.writer import write_letor
from dualrank.engines.target import Export, Written
from dualrank.errors import DataError, SettingsError
from dualrank.propensity.propensity import Propensity


def debiased_labels(
    log: ClickLog, dataset: Dataset, propensity: Propensity, max_weight: float = np.inf
) -> Dataset:
    """The displayed documents, graded by their inverse-propensity-weighted clicks per session.

        y(x) = Σ_l Σ_i w_i c_{l,i}  /  Σ_l n_l        over lists l that show x at position i

    w_i = P(o_1)/P(o_i), where the propensity has curves by a column of the log that of the
    session's own context. In expectation this is P(o_1) P(r_x): relevance, up to one factor for
    all.
    """
    depth = log.lists.depth
    if propensity.depth < depth:
        raise DataError(
            f"lists show {depth} documents, but the propensity knows {propensity.depth} positions"
        )
    mask, sessions = log.lists.mask, log.sessions_per_list
    weighted = np.zeros(mask.shape)
    for part, curve in _by_context(log, propensity):
        weighted += part.clicks_per_list * np.minimum(curve.weights[:depth], max_weight)
    shown = log.lists.documents[mask]
    clicks = np.bincount(shown, weighted[mask], dataset.document_count)
    times = np.bincount(
        shown, np.broadcast_to(sessions[:, None], mask.shape)[mask], dataset.document_count
    )
    labels = np.divide(clicks, times, out=np.zeros_like(clicks), where=times > 0)
    grades = labels.astype(np.float32)
    graded = replace(dataset, grades=grades, max_grade=float(grades.max()))
    return _displayed(graded, times > 0)


def to_letor(asked: Export) -> Written:
    """The target `letor`: the displayed documents of a log with their debiased labels."""
    propensity = asked.model.propensity
    if propensity is None:
        method = asked.model.training.get("method", "such")
        raise SettingsError(f"a model of method {method} has no propensities to debias clicks with")
    if asked.log is None or asked.documents is None:
        raise SettingsError("LETOR text needs the click log, and the features of its documents")
    labelled = debiased_labels(asked.log, asked.documents, propensity, asked.max_weight)
    write_letor(labelled, asked.out)
    return Written(str(labelled), {"documents": labelled.document_count})


def _by_context(log: ClickLog, propensity: Propensity) -> list[tuple[ClickLog, Propensity]]:
    """The parts of a log that have curves of their own, or the whole with the common one."""
    if propensity.context is None:
        return [(log, propensity)]
    curves, column = propensity.by_context, log.column(propensity.context)
    return [
        (log.take_rows(np.flatnonzero(column.codes == code)), curves.get(name, propensity))
        for code, name in enumerate(column.names)
    ]


def _displayed(dataset: Dataset, shown: NDArray[np.bool_]) -> Dataset:
    """Only these documents; queries of which none is left go too."""
    queries = dataset.query_of_document[shown]
    return Dataset.from_arrays(
        dataset.features[shown],
        dataset.query_ids[queries],
        dataset.require_grades()[shown],
        doc_ids=dataset.ids_of_documents()[shown],
        max_grade=dataset.max_grade,
    )
