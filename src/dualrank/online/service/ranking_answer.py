"""From candidates to an answer: features, scores, the order, and what the user will see."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.learning.model import Model
from dualrank.online.service.bodies import Document, Query, Result
from dualrank.online.service.exploration import Exploration
from dualrank.online.service.feature_table import FeatureTable
from dualrank.online.service.service_settings import ServiceSettings
from dualrank.sentences import document_of, shortened

Features = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Candidates:
    """A query that was checked: its documents, a row of features for each."""

    query_id: str
    doc_ids: list[str]
    features: Features
    displayed: int
    client: str
    brought: bool
    """Whether the request brought the features; else the table has them."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """An order of candidates, as it is displayed."""

    results: list[Result]
    shown: tuple[str, ...]
    """What the user sees."""
    swapped: int
    features: bytes
    """Of what the user sees, where the request brought them."""


def candidates_of(
    query: Query,
    inputs: int,
    table: FeatureTable | None,
    limits: ServiceSettings,
) -> Candidates:
    """A query's documents with `inputs` features each; a DataError that says what is wrong."""
    documents, name = query["documents"], query["query_id"]
    if len(documents) > limits.max_documents:
        raise DataError(
            f"query {shortened(name)} has {len(documents):,} documents; this service takes "
            f"at most {limits.max_documents:,}"
        )
    doc_ids = [each["doc_id"] for each in documents]
    if len(set(doc_ids)) < len(doc_ids):
        again = next(each for i, each in enumerate(doc_ids) if each in doc_ids[:i])
        raise DataError(f"{document_of(name, again)} is there twice")
    with_features = sum("features" in each for each in documents)
    if with_features == len(documents):
        features = features_of(name, documents, inputs)
    elif with_features:
        odd = next(each["doc_id"] for each in documents if "features" not in each)
        raise DataError(f"{document_of(name, odd)} has no features, and others have")
    elif table is None:
        raise DataError(
            f"{document_of(name, doc_ids[0])} has no features, and this service has no table of "
            "them; send them, or start it with --features"
        )
    else:
        features = table.features(name, doc_ids)
    displayed = min(query.get("displayed", limits.depth), len(doc_ids))
    client = query.get("client", "")
    return Candidates(name, doc_ids, features, displayed, client, bool(with_features))


@cache
def _row(inputs: int) -> struct.Struct:
    return struct.Struct(f"={inputs}f")


def features_of(query_id: str, documents: Sequence[Document], inputs: int) -> Features:
    """The features of documents that have them, as a matrix.

    A row is packed at once, which takes a third of the time that numpy needs for lists of numbers,
    and refuses what float32 cannot hold.
    """
    pack = _row(inputs).pack
    try:
        packed = b"".join([pack(*each["features"]) for each in documents])
    except (struct.error, OverflowError):
        return _with_gaps(query_id, documents, inputs)
    return np.frombuffer(packed, np.float32).reshape(-1, inputs)


def _with_gaps(query_id: str, documents: Sequence[Document], inputs: int) -> Features:
    """The same where values are missing; what else may have failed is said."""
    for each in documents:
        if len(each["features"]) != inputs:
            raise DataError(
                f"{document_of(query_id, each['doc_id'])} has {len(each['features'])} features; "
                f"the model knows {inputs}"
            )
    exact = np.array([each["features"] for each in documents], np.float64)
    with np.errstate(over="ignore"):
        features = exact.astype(np.float32)
    row, column = np.nonzero(np.isinf(features))
    if len(row):
        raise DataError(
            f"{document_of(query_id, documents[row[0]]['doc_id'])}: feature {column[0] + 1} is "
            f"{exact[row[0], column[0]]:g}, which is too large"
        )
    return features


def score(model: Model, asked: Sequence[Candidates]) -> list[NDArray[np.float32]]:
    """Scores of the candidates of several queries, in one pass."""
    one = asked[0].features
    features = one if len(asked) == 1 else np.concatenate([each.features for each in asked])
    offsets = np.append(0, np.cumsum([len(each.doc_ids) for each in asked]))
    scores = None
    if not model.ranker.by_list:
        try:
            scores = model.predict(features)
        except DataError:
            scores = None  # asked again with names, for the sentence
    if scores is None:
        doc_ids = _objects(name for each in asked for name in each.doc_ids)
        query_ids = _objects(each.query_id for each in asked)
        scores = model.predict(Dataset(features, offsets, query_ids, doc_ids=doc_ids))
    return [scores] if len(asked) == 1 else np.split(scores, offsets[1:-1])


def _objects(names: object) -> NDArray[np.str_]:
    """Ids for sentences only: an array of texts would copy them all."""
    listed = list(names)  # type: ignore[call-overload]
    held = np.empty(len(listed), object)
    held[:] = listed
    return held


def rank(candidates: Candidates, scores: NDArray[np.float32], exploration: Exploration) -> Ranked:
    """The best first, equal scores in the order of the request; then, rarely, an exchange."""
    order = np.argsort(-scores, kind="stable")
    swapped = exploration.position(candidates.displayed)
    if swapped:
        order[[0, swapped - 1]] = order[[swapped - 1, 0]]
    names = candidates.doc_ids
    rows = zip(order.tolist(), scores[order].tolist(), strict=True)
    results: list[Result] = [
        {"doc_id": names[i], "score": value, "position": place}
        for place, (i, value) in enumerate(rows, start=1)
    ]
    top = order[: candidates.displayed]
    features = candidates.features[top].tobytes() if candidates.brought else b""
    return Ranked(results, tuple(names[i] for i in top.tolist()), swapped, features)
