"""`dualrank.fit`: a click log and features in, a model out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dualrank.corrections.position_models import (
    ContextualPositions,
    PositionModel,
    PositionModelName,
    build_position_model,
)
from dualrank.corrections.weighting import (
    DualLearning,
    GivenPropensity,
    NoCorrection,
    Weighting,
    require_positions,
)
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.scaling import Scaler
from dualrank.errors import DataError
from dualrank.learning.auto import (
    NAIVE,
    choose_by_clicks,
    choose_by_grades,
    doubt,
    harvested_propensity,
)
from dualrank.learning.extracted_relevance import extract_relevance, scaled_to_clicks
from dualrank.learning.feedback import EstimatedRelevance, LoggedClicks
from dualrank.learning.loop import Progress, Record, Trainer
from dualrank.learning.model import Model
from dualrank.learning.options import Method, Options
from dualrank.learning.validation import OnGrades, OnHeldOutClicks, Validation
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN, Linear, Network
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.settings import TrainingSettings
from dualrank.version import __version__


def fit(
    log: ClickLog,
    dataset: Dataset,
    *,
    method: Method = "dla",
    ranker: DNN | Linear | RankingSVM | None = None,
    propensity: Propensity | None = None,
    position_model: PositionModelName | None = None,
    context: str | None = None,
    click_model: str | None = None,
    min_sessions: int | None = None,
    validation: Dataset | float = 0.1,
    scaling: str = "standard",
    settings: TrainingSettings | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
    record: Record | None = None,
) -> Model:
    """Train a ranker from clicks.

    `dla` learns the propensities with the ranker; `ipw` takes `propensity`; `naive` believes every
    click; `auto` trains the naive ranker and one per correction that the log allows, and takes the
    correction that predicts held-out clicks clearly better, if any. `click-model` learns from the
    relevance that a `click_model` (`dbn`, unless given) extracts from lists that were displayed in
    at least `min_sessions` sessions (10).

    `validation` is a judged data set, by whose `settings.metric` the best ranker is kept, or the
    share of queries whose clicks are held out for that; 0 keeps the last ranker. With few queries
    the clicks of a tenth say little: prefer judged queries, or 0. The propensity of the model is
    that of the last step, whichever ranker is kept. A `RankingSVM` uses all clicks and needs
    neither validation nor steps.

    `position_model` is the form of what `dla` learns about examination: `variables` (one per
    position, the default), a `network`, a `recurrent` one, or `contextual`: a curve for every value
    of the log's column `context`, such as a device. With a `propensity` that has such curves,
    `ipw` with the same `context` weighs every session by its own.

    Training goes on from `checkpoint` where there is one. `progress` hears how far it is, `record`
    the loss, the curve and the validation of some steps (see `event_files`).
    """
    settings = settings or TrainingSettings()
    ranker = DNN() if ranker is None else ranker
    options = Options(method, ranker, position_model, context, click_model, min_sessions)
    options.check(propensity, validation, scaling)
    if not log.clicks.any():
        raise DataError(
            f"none of the {log.sessions} sessions has a click: there is nothing to learn from"
        )
    if log.lists.documents.max() >= dataset.document_count:
        raise DataError("the log shows documents that this data set does not have")
    if method == "auto":
        return _fit_best(
            log,
            dataset,
            ranker=ranker,
            position_model=position_model,
            context=context,
            validation=validation,
            scaling=scaling,
            settings=settings,
            checkpoint=checkpoint,
            progress=progress,
            record=record,
        )
    position_model, extraction = options.position_model_name, options.extraction
    scaler = Scaler.fit(dataset.features, kind=scaling)
    features = scaler.transform(dataset.features)
    training: dict[str, Any] = {
        "method": method,
        "ranker": type(ranker).__name__,
        "settings": asdict(settings),
        "scaling": scaling,
        "validation": _name(validation),
        "version": __version__,
        "data": fingerprint(log, dataset, context),
        "reading": None if log.reading is None else log.reading.to_dict(),
    }
    if method == "dla":
        training["position_model"] = position_model
    if method in ("dla", "ipw"):
        training["context"] = context
    relevance = None
    if extraction is not None:
        training |= {"click_model": extraction[0], "min_sessions": extraction[1]}
        log, relevance = extract_relevance(log, *extraction)
        relevance = scaled_to_clicks(relevance, log)
    if isinstance(ranker, RankingSVM):
        examination = None
        if propensity is not None:
            require_positions(propensity, log.lists.depth)
            clipped = np.maximum(propensity.examination, 1 / settings.max_weight)
            examination = clipped[: log.lists.depth]
        network, svm = _fit_svm(ranker, features, log, examination)
        return Model(network, scaler, propensity, dataset.feature_names, {**training, **svm})

    log, held_out = hold_out(log, validation, settings.seed)
    weighting = _weighting(method, log, propensity, settings, position_model, context)
    network = ranker.build(scaler.output_count, settings.seed)
    trainer = Trainer(
        network,
        torch.from_numpy(features),
        LoggedClicks(log, context) if relevance is None else EstimatedRelevance(log, relevance),
        weighting,
        settings,
        validation=_validation(
            validation, held_out, features, scaler, settings, weighting, relevance
        ),
    )
    identity = {
        "method": method,
        "sizes": list(network.sizes),
        "elu_output": network.elu_output,
        "precision": getattr(ranker, "precision", "float32"),
        "scaling": scaling,
        "validation": training["validation"],
        "examination": None if propensity is None else propensity.examination.tolist(),
        "position_model": position_model,
        "context": context,
        "extraction": extraction,
        "data": training["data"],
    }
    history = trainer.run(
        checkpoint=None if checkpoint is None else Path(checkpoint),
        identity=identity,
        progress=progress,
        record=record,
    )
    learned = weighting.propensity()
    if learned is not None and method == "dla":
        learned = replace(learned, sessions=log.sessions)
    return Model(
        network,
        scaler,
        learned,
        dataset.feature_names,
        {**training, "device": str(trainer.device), "history": asdict(history)},
    )


def _fit_best(
    log: ClickLog,
    dataset: Dataset,
    *,
    ranker: DNN | Linear | RankingSVM,
    position_model: PositionModelName | None,
    context: str | None,
    validation: Dataset | float,
    settings: TrainingSettings,
    checkpoint: str | Path | None,
    progress: Progress | None,
    record: Record | None,
    scaling: str,
) -> Model:
    """Train the candidates of `auto` and keep the one that is chosen (see `auto`)."""
    rest, held_out = hold_out(log, validation, settings.seed)
    if isinstance(ranker, RankingSVM):
        log = rest  # which holds nothing out by itself
    candidates: dict[str, dict[str, Any]] = {NAIVE: {}}
    harvested = harvested_propensity(rest, settings.seed)
    if isinstance(harvested, Propensity):
        candidates["ipw"] = {"propensity": harvested}
    if not isinstance(ranker, RankingSVM):
        candidates["dla"] = {"position_model": position_model, "context": context}
    models = {}
    for number, (name, options) in enumerate(candidates.items()):

        def report(done: int, total: int, before: int = number) -> None:
            if progress:
                progress(before * total + done, len(candidates) * total)

        def note(step: int, values: Mapping[str, float], prefix: str = name) -> None:
            if record:
                record(step, {f"{prefix}/{each}": value for each, value in values.items()})

        models[name] = fit(
            log,
            dataset,
            method=name,  # type: ignore[arg-type]
            ranker=ranker,
            validation=validation,
            scaling=scaling,
            settings=settings,
            checkpoint=None if checkpoint is None else _beside(Path(checkpoint), name),
            progress=report,
            record=note,
            **options,
        )
    if isinstance(validation, Dataset):
        scores = {name: model.predict(validation) for name, model in models.items()}
        choice = choose_by_grades(scores, validation, settings.metric)
    else:
        assert held_out is not None
        scores = {name: model.predict(dataset) for name, model in models.items()}
        choice = choose_by_clicks(scores, held_out, doubt(rest))
    chosen = models[choice.chosen]
    told: dict[str, object] = {**choice.to_dict()}
    if not isinstance(harvested, Propensity):
        told["not_harvested"] = harvested
    return replace(chosen, training={**chosen.training, "method": "auto", "auto": told})


def _beside(path: Path, name: str) -> Path:
    """A checkpoint of its own for each candidate."""
    return path.with_name(f"{path.stem}-{name}{path.suffix}")


def fingerprint(log: ClickLog, dataset: Dataset, context: str | None = None) -> str:
    """A digest of what a model is trained on."""
    digest = hashlib.sha256()
    if context is not None:
        column = log.column(context)
        digest.update(repr(column.names).encode())
        digest.update(np.ascontiguousarray(column.codes).data)
    for array in (log.lists.documents, log.list_of, log.clicks, log.counts, dataset.offsets):
        digest.update(np.ascontiguousarray(array).data)
    digest.update(np.ascontiguousarray(dataset.features).data)
    return digest.hexdigest()


def _name(validation: Dataset | float) -> float | str:
    """What tells one validation from another: a share, or a digest of judged queries."""
    if not isinstance(validation, Dataset):
        return float(validation)
    digest = hashlib.sha256()
    for array in (validation.features, validation.offsets, validation.require_grades()):
        digest.update(np.ascontiguousarray(array).data)
    return f"judged queries {digest.hexdigest()[:12]}"


def hold_out(
    log: ClickLog, validation: Dataset | float, seed: int
) -> tuple[ClickLog, ClickLog | None]:
    """Split by query, so that no list of a held-out query is trained on.

    The same seed holds the same queries out, whatever is trained.
    """
    if isinstance(validation, Dataset) or validation == 0:
        return log, None
    queries = np.unique(log.lists.queries)
    rng = np.random.default_rng([seed, 0x_5A1])
    chosen = rng.choice(queries, max(1, round(validation * len(queries))), replace=False)
    held = np.isin(log.lists.queries, chosen)
    held_out = log.take_lists(np.flatnonzero(held))
    if not held_out.clicks.any() or held.all():
        raise DataError(
            "too few queries with clicks to hold some out; give validation=0 or judged queries"
        )
    return log.take_lists(np.flatnonzero(~held)), held_out


def _weighting(
    method: Method,
    log: ClickLog,
    propensity: Propensity | None,
    settings: TrainingSettings,
    position_model: PositionModelName | None,
    context: str | None,
) -> Weighting:
    depth = log.lists.depth
    if position_model is not None:
        return DualLearning(depth, settings, _build(position_model, log, settings.seed, context))
    if propensity is not None:
        contexts = None if context is None else log.column(context).names
        return GivenPropensity(propensity, depth, settings.max_weight, contexts)
    return NoCorrection()


def _build(name: PositionModelName, log: ClickLog, seed: int, context: str | None) -> PositionModel:
    depth = log.lists.depth
    if context is None:
        return build_position_model(name, depth, seed)
    column = log.column(context)
    sessions = np.bincount(column.codes, log.counts, len(column.names)).astype(int)
    return ContextualPositions(
        depth, dict(zip(column.names, sessions.tolist(), strict=True)), context
    )


def _validation(
    validation: Dataset | float,
    held_out: ClickLog | None,
    features: NDArray[np.float32],
    scaler: Scaler,
    settings: TrainingSettings,
    weighting: Weighting,
    relevance: NDArray[np.float32] | None,
) -> Validation | None:
    if isinstance(validation, Dataset):
        scaled = scaler.transform(validation.features)
        return OnGrades(scaled, validation, settings.metric)
    if held_out is not None:
        return OnHeldOutClicks(
            features, held_out, weighting.propensity, settings.max_weight, relevance
        )
    return None


def _fit_svm(
    svm: RankingSVM,
    features: NDArray[np.float32],
    log: ClickLog,
    examination: NDArray[np.float64] | None,
) -> tuple[Network, dict[str, Any]]:
    solution = svm.fit_clicks(features, log.lists, log.clicks_per_list, examination)
    network = Network((features.shape[1], 1))
    with torch.no_grad():
        network.weights[0].copy_(torch.from_numpy(solution.weights)[None])
    outcome = {"C": svm.C, "duality_gap": solution.duality_gap, "converged": solution.converged}
    return network, outcome
