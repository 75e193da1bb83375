"""Debiased clicks in the place of grades, for learners that train on labels.

Grades are whole numbers unless fractions are asked for, because most learners refuse them:
LightGBM's `lambdarank` and XGBoost's `rank:ndcg` with its exponential gain do (docs/judgements.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.letor.writer import write_letor
from dualrank.engines.grades import check_grades, cut_into_grades
from dualrank.engines.target import Export, Written
from dualrank.errors import DataError, SettingsError
from dualrank.propensity.pair_counts import parts_by_context
from dualrank.propensity.propensity import Propensity
from dualrank.storage import write_text

FRACTIONS = 0
"""The number of grades that stands for labels as they are."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Documents with labels in the place of grades, and the evidence behind each label.

    `weights` are the sessions in which a document would have been examined at the first position,
    Σ_l n_l P(o_i)/P(o_1): a label's variance falls in proportion to them. A session at the top
    counts 1, one at the end of the list little.
    """

    documents: Dataset
    weights: NDArray[np.float64]

    def graded(self, grades: int) -> Labelled:
        """The same with whole-number grades from 0, cut where the least order is lost."""
        documents = self.documents
        labels, queries = documents.require_grades(), documents.query_of_document
        found = cut_into_grades(labels, queries, grades, weights=self.weights)
        whole = replace(documents, grades=found.astype(np.float32), max_grade=float(grades - 1))
        return replace(self, documents=whole)


def debiased_labels(
    log: ClickLog, dataset: Dataset, propensity: Propensity, max_weight: float = np.inf
) -> Dataset:
    """The displayed documents, graded by their inverse-propensity-weighted clicks per session.

        y(x) = Σ_l Σ_i w_i c_{l,i}  /  Σ_l n_l        over lists l that show x at position i

    w_i = P(o_1)/P(o_i), where the propensity has curves by a column of the log that of the
    session's own context. In expectation this is P(o_1) P(r_x): relevance, up to one factor for
    all.
    """
    return label_documents(log, dataset, propensity, max_weight).documents


def label_documents(
    log: ClickLog, dataset: Dataset, propensity: Propensity, max_weight: float = np.inf
) -> Labelled:
    """What `debiased_labels` gives, with the evidence behind each label."""
    depth = log.lists.depth
    if propensity.depth < depth:
        raise DataError(
            f"lists show {depth} documents, but the propensity knows {propensity.depth} positions"
        )
    mask, sessions = log.lists.mask, log.sessions_per_list
    weighted, examined = np.zeros(mask.shape), np.zeros(mask.shape)
    for part, curve in parts_by_context(log, propensity):
        inverse = np.minimum(curve.weights[:depth], max_weight)
        weighted += part.clicks_per_list * inverse
        examined += part.sessions_per_list[:, None] / inverse
    shown = log.lists.documents[mask]
    clicks = np.bincount(shown, weighted[mask], dataset.document_count)
    times = np.bincount(
        shown, np.broadcast_to(sessions[:, None], mask.shape)[mask], dataset.document_count
    )
    labels = np.divide(clicks, times, out=np.zeros_like(clicks), where=times > 0)
    grades = labels.astype(np.float32)
    graded = replace(dataset, grades=grades, max_grade=float(grades.max()))
    evidence = np.bincount(shown, examined[mask], dataset.document_count).astype(np.float64)
    return Labelled(_displayed(graded, times > 0), evidence[times > 0])


def to_letor(asked: Export) -> Written:
    """The target `letor`: the displayed documents of a log with their debiased labels.

    The evidence behind the labels goes to a second file, one number a line.
    """
    propensity = asked.model.propensity
    if propensity is None:
        raise SettingsError(_without_propensities(asked.model.training))
    if asked.log is None or asked.documents is None:
        raise SettingsError("LETOR text needs the click log, and the features of its documents")
    if asked.grades != FRACTIONS:
        check_grades(asked.grades)
    labelled = label_documents(asked.log, asked.documents, propensity, asked.max_weight)
    if asked.grades != FRACTIONS:
        labelled = labelled.graded(asked.grades)
    documents, weights = labelled.documents, weights_file(asked.out)
    write_letor(documents, asked.out)
    write_text(weights, "".join(f"{weight:.9g}\n" for weight in labelled.weights.tolist()))
    return Written(
        f"{documents}, weights in {weights}",
        {"documents": documents.document_count, "weights": str(weights)},
    )


def _without_propensities(training: dict[str, Any]) -> str:
    """Why a model cannot say what a click is worth, and what can."""
    method, chosen = training.get("method"), training.get("auto", {}).get("chosen")
    why = f"a model of method {method} has" if method else "the model has"
    if chosen is not None:
        why = f"method auto chose {chosen}, so that the model has"
    return (
        f"{why} no propensities to debias clicks with: train a model with method='dla', which "
        "learns them and need not be the one that ranks, and export its labels; 'dualrank judge' "
        "grades documents by propensities that it estimates from the log itself"
    )


def weights_file(out: Path) -> Path:
    """Where the evidence behind the labels of a file goes."""
    return out.with_name(out.name + ".weights")


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
