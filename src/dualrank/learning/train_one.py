"""From a plan to a trained model: the pieces are put together, and the loop runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dualrank.corrections.correction import Basis, Correction
from dualrank.data.dataset import Dataset
from dualrank.data.scaling import Scaler
from dualrank.errors import SettingsError
from dualrank.learning.loop import Loop, Progress, Watch, part_of
from dualrank.learning.material import Material, Source
from dualrank.learning.model import Model, require_values
from dualrank.learning.plan import Plan
from dualrank.learning.score_checks import check_trained
from dualrank.learning.whole_source import LabelSource
from dualrank.rankers.ranker import Ranker
from dualrank.version import __version__


def train_one(
    source: Source,
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
            plan.for_method(plan.way.ground),
            checkpoint=checkpoint and checkpoint.with_stem(f"{checkpoint.stem}-{plan.way.ground}"),
            progress=part_of(progress, 0, 2),
            watch=watch,
        )
        progress = part_of(progress, 1, 2)
    if isinstance(source, LabelSource) and (
        plan.held_out or plan.way.needs_log or checkpoint is not None
    ):
        raise SettingsError(
            f"{type(source.labels).__name__} is no click log: nothing can be held out or extracted "
            "from it, and no checkpoint holds its state; give judged queries, or validation=0"
        )
    dataset, lists = source.sample.dataset, source.sample.lists
    settings, judged = plan.settings, plan.validation
    if not plan.ranker.makes.takes_missing:
        source.require_values(plan.ranker.kind, plan.scaling)
        if isinstance(judged, Dataset):
            require_values(judged.features, judged.feature_names, plan.ranker.kind)
    kind = plan.scaling if plan.ranker.makes.scaled else "none"
    scaler = source.scaler(kind) if start is None else start.scaler
    features = scaler.transform(dataset.features)
    regressed = features
    if plan.way.correction.regresses and not plan.ranker.makes.scaled:
        filled = dataset.filled().features
        regressed = Scaler.fit(filled).transform(filled)
    described: dict[str, Any] = {**plan.describe(), "scaling": scaler.kind, "version": __version__}
    described |= source.describe(plan.context)
    material = Material.of(source, plan, ground)
    trained_on = material.source.sample.rest
    basis = Basis(
        lists.depth,
        settings,
        trained_on,
        plan.propensity,
        plan.position_model,
        plan.context,
        plan.loss,
        regressed,
        material.under(trained_on),
        None if plan.context is None else source.sessions_by(plan.context),
    )
    correction = plan.way.correction.build(basis)
    ranker = plan.ranker.build(scaler.output_count, settings.seed)
    known = _known(optimizers or {}, "correction", correction)
    if start is not None:
        described["start"] = _go_on(start, plan, ranker, correction, believed=bool(known))
    loop = Loop(
        ranker,
        torch.from_numpy(features),
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
    if learned is not None and plan.propensity is None:
        learned = replace(learned, sessions=material.source.sessions)
    described |= {"device": str(loop.device), "history": asdict(history), **ranker.outcome()}
    held = {"ranker": ranker.optimizer_state(), "correction": correction.optimizer_state()}
    if material.ground is not None:
        held = {}
        worth = correction.worth_of_ground()
        ranker = ranker.plus(material.ground.model.ranker, worth / material.ground.scale)
        described["worth_of_ground"] = worth
    warnings = check_trained(ranker, scaler, dataset, lists, advice_for(plan))
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


def _identity(described: dict[str, Any]) -> dict[str, Any]:
    """What makes a run this run: all but where it is computed, by whom, and how it was read."""
    identity = {k: v for k, v in described.items() if k not in ("version", "reading")}
    settings = {k: v for k, v in described["settings"].items() if k != "device"}
    return {**identity, "settings": settings}
