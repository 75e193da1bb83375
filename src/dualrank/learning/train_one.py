"""From a plan to a trained model: the pieces are put together, and the loop runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dualrank.clicks.models.counting import require_countable, require_skips
from dualrank.corrections.correction import Basis, Correction
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.scaling import Scaler
from dualrank.errors import DataError, SettingsError
from dualrank.learning.feedback import Feedback, require_clicks
from dualrank.learning.loop import Loop, Progress, Watch, part_of
from dualrank.learning.material import Material
from dualrank.learning.model import Model, require_values
from dualrank.learning.plan import Plan
from dualrank.learning.score_checks import check_trained
from dualrank.learning.sharded.mapped_feedback import require_drawn
from dualrank.learning.sharded.sharded_source import ShardedSource
from dualrank.rankers.ranker import Ranker
from dualrank.version import __version__


def train_one(
    source: ClickLog | Feedback | ShardedSource,
    dataset: Dataset,
    plan: Plan,
    *,
    start: Model | None = None,
    ground: Model | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    optimizers: Mapping[str, Tensor] | None = None,
) -> Model:
    """Train by one method; what is held out of a log keeps the best ranker.

    Of a log in shards, `dataset` is that of its sample: documents are read as they are drawn.
    With `start`, its scaling, ranker and examination are where the training begins, and with
    `optimizers` those of ranker and belief, too, as far as they fit. `ground` is the
    model that a method with a ground stands on; it is trained first where it is not given.
    """
    if plan.way.ground is not None and start is not None:
        raise SettingsError(
            f"method {plan.way.name} stands on a ranker of its own, and goes on from no model"
        )
    if plan.way.ground is None:
        ground = None
    elif ground is None:
        ground = train_one(
            source,
            dataset,
            plan.for_method(plan.way.ground),
            checkpoint=checkpoint and checkpoint.with_stem(f"{checkpoint.stem}-{plan.way.ground}"),
            progress=part_of(progress, 0, 2),
            watch=watch,
        )
        progress = part_of(progress, 1, 2)
    settings = plan.settings
    shards = source if isinstance(source, ShardedSource) else None
    if shards is not None:
        require_drawn(plan)
    if not plan.ranker.makes.takes_missing:
        judged = [plan.validation] if isinstance(plan.validation, Dataset) else []
        for each in (*judged, *([dataset] if shards is None else [])):
            require_values(each.features, each.feature_names, plan.ranker.kind)
        if shards is not None:
            shards.require_values(plan.ranker.kind, plan.scaling)
    kind = plan.scaling if plan.ranker.makes.scaled else "none"
    scaler = _scaler(shards or dataset, kind) if start is None else start.scaler
    features = scaler.transform(dataset.features)
    regressed = features
    if plan.way.correction.regresses and not plan.ranker.makes.scaled:
        filled = dataset.filled().features
        regressed = Scaler.fit(filled).transform(filled)
    described: dict[str, Any] = {**plan.describe(), "scaling": scaler.kind, "version": __version__}
    if shards is not None:
        described["data"], described["shards"] = shards.log.digest, shards.describe()
        described["reading"] = shards.log.reading.to_dict()
    elif isinstance(source, ClickLog):
        described["data"] = fingerprint(source, dataset, plan.context)
        described["reading"] = None if source.reading is None else source.reading.to_dict()
    elif plan.held_out or plan.way.needs_log or checkpoint is not None:
        raise SettingsError(
            f"{type(source).__name__} is no click log: nothing can be held out or extracted from "
            "it, and no checkpoint holds its state; give judged queries, or validation=0"
        )
    material = Material.of(source, dataset, plan, ground)
    basis = Basis(
        source.lists.depth,
        settings,
        material.log,
        plan.propensity,
        plan.position_model,
        plan.context,
        plan.loss,
        regressed,
        material.under(material.log),
        None if shards is None or plan.context is None else shards.sessions_by(plan.context),
    )
    correction = plan.way.correction.build(basis)
    ranker = plan.ranker.build(scaler.output_count, settings.seed)
    known = _known(optimizers or {}, "correction", correction)
    if start is not None:
        described["start"] = _go_on(start, plan, ranker, correction, believed=bool(known))
    loop = Loop(
        ranker,
        # Lists that are drawn from shards bring their features.
        torch.from_numpy(features if shards is None else features[:0]),
        material.feedback(correction, scaler),
        correction,
        settings,
        validation=material.validation(features, scaler, correction),
    )
    loop.name = plan.way.name
    if known:
        correction.load_optimizer_state(known)
    if sums := _known(optimizers or {}, "ranker", ranker):
        ranker.load_optimizer_state(sums)
    history = loop.run(
        checkpoint=checkpoint, identity=_identity(described), progress=progress, watch=watch
    )
    learned = correction.propensity()
    if learned is not None and plan.propensity is None and material.log is not None:
        learned = replace(learned, sessions=(shards or material.log).sessions)
    described |= {"device": str(loop.device), "history": asdict(history), **ranker.outcome()}
    held = {"ranker": ranker.optimizer_state(), "correction": correction.optimizer_state()}
    if material.ground is not None:
        held = {}
        worth = correction.worth_of_ground()
        ranker = ranker.plus(material.ground.model.ranker, worth / material.ground.scale)
        described["worth_of_ground"] = worth
    warnings = check_trained(ranker, scaler, dataset, source.lists, advice_for(plan))
    if history.left_out:
        warnings.append(
            f"{history.left_out} of {loop.steps} steps were left out, since what they would have "
            f"added was not finite: {advice_for(plan)}"
        )
    if warnings:
        described["warnings"] = warnings
    return Model(
        ranker,
        scaler,
        learned,
        dataset.feature_names,
        described,
        plan.ranker.kind,
        {f"{who}.{k}": v.detach().cpu() for who, state in held.items() for k, v in state.items()},
    )


def _scaler(documents: Dataset | ShardedSource, kind: str) -> Scaler:
    """The scaling of all documents, wherever they are."""
    if isinstance(documents, ShardedSource):
        return documents.scaler(kind)
    return Scaler.fit(documents.features, kind=kind)


def advice_for(plan: Plan) -> str:
    """What a training may do whose scores are of no use."""
    kind = plan.ranker.makes
    by_scaling = "scale the features" if kind.scaled and plan.scaling == "none" else ""
    by_rate = "" if kind.at_once else f"lower the learning rate (it was {plan.suited.rate:g})"
    return ", or ".join(each for each in (by_scaling, by_rate) if each) or (
        "look for features of extreme size" if kind.scaled else "give features that differ"
    )


def _known(
    optimizers: Mapping[str, Tensor], who: str, piece: Ranker | Correction
) -> dict[str, Tensor]:
    """What an optimiser of this piece held, if it was of the same kind and size."""
    start = f"{who}."
    found = {k.removeprefix(start): v for k, v in optimizers.items() if k.startswith(start)}
    if not found:
        return {}
    held = piece.optimizer_state()
    same = found.keys() == held.keys() and all(v.shape == held[k].shape for k, v in found.items())
    return found if same else {}


def _go_on(
    start: Model, plan: Plan, ranker: Ranker, correction: Correction, *, believed: bool
) -> str:
    """Give both pieces what a model has learned, and name that by a digest."""
    if plan.ranker.kind != start.kind:
        raise SettingsError(f"a {start.kind} model is no start for a {plan.ranker.kind} ranker")
    try:
        ranker.load_tensors(start.ranker.tensors())
    except (KeyError, ValueError) as error:
        raise SettingsError(f"the model is no start for this ranker: it {error}") from error
    if start.propensity is not None and not believed:
        correction.believe(start.propensity)
    digest = hashlib.sha256()
    for tensor in ranker.tensors().values():
        digest.update(tensor.numpy().data)
    return digest.hexdigest()


def fingerprint(log: ClickLog, dataset: Dataset, context: str | None = None) -> str:
    """A digest of what a model is trained on."""
    digest = hashlib.sha256()
    if context is not None:
        column = log.column(context)
        digest.update(repr(column.names).encode())
        digest.update(np.ascontiguousarray(column.codes).data)
    for array in (log.lists.documents, log.list_of, log.clicks, log.counts, dataset.offsets):
        digest.update(np.ascontiguousarray(array).data)
    for kind, amounts in log.events.items():
        digest.update(kind.encode())
        digest.update(np.ascontiguousarray(amounts).data)
    digest.update(np.ascontiguousarray(dataset.features).data)
    return digest.hexdigest()


def check_source(source: ClickLog | Feedback | ShardedSource, dataset: Dataset) -> None:
    """Refuse what nothing can be learned from."""
    if isinstance(source, ShardedSource):
        source.check()
    if isinstance(source, ClickLog):
        require_countable(source)
        require_skips(source)
        require_clicks(source.clicks.any(), source.sessions)
    if source.lists.documents.max() >= dataset.document_count:
        raise DataError("the log shows documents that this data set does not have")


def _identity(described: dict[str, Any]) -> dict[str, Any]:
    """What makes a run this run: all but where it is computed, by whom, and how it was read."""
    identity = {k: v for k, v in described.items() if k not in ("version", "reading")}
    settings = {k: v for k, v in described["settings"].items() if k != "device"}
    return {**identity, "settings": settings}
