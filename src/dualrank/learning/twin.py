"""The naive twin: the same ranker on the same clicks without correction, for comparison.

Correcting for position can lose to not correcting at all, and the training loss does not show it.
A model whose twin predicts held-out clicks as well has an unproven gain, and its owner should know.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.learning.auto import NAIVE, Choice, choose_by_clicks, choose_by_grades, doubt
from dualrank.learning.fit import fit, hold_out
from dualrank.learning.loop import Progress, Record
from dualrank.learning.model import Model
from dualrank.rankers.network import DNN, Linear
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.settings import TrainingSettings

TWIN = "twin"


def fit_twin(
    model: Model,
    log: ClickLog,
    dataset: Dataset,
    *,
    ranker: DNN | Linear | RankingSVM,
    validation: Dataset | float,
    scaling: str,
    settings: TrainingSettings,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
    record: Record | None = None,
) -> tuple[Model, Model]:
    """The model with what the comparison says in its `training["twin"]`, and its naive twin.

    All options are those that the model was trained with.
    """
    twin = fit(
        log,
        dataset,
        method="naive",
        ranker=ranker,
        validation=validation,
        scaling=scaling,
        settings=settings,
        checkpoint=checkpoint,
        progress=progress,
        record=record,
    )
    method = model.training["method"]
    told: dict[str, Any] = {"history": twin.training.get("history")}
    choice: Choice | str = "the Ranking SVM is trained on all clicks, none are left to compare by"
    if isinstance(validation, Dataset) or not isinstance(ranker, RankingSVM):
        choice = _compare({method: model, NAIVE: twin}, log, dataset, validation, settings)
    if isinstance(choice, Choice):
        told |= choice.to_dict()
    else:
        told["why"] = choice
    return replace(model, training={**model.training, TWIN: told}), twin


def _compare(
    models: dict[str, Model],
    log: ClickLog,
    dataset: Dataset,
    validation: Dataset | float,
    settings: TrainingSettings,
) -> Choice | str:
    """Which of the two is better, or why that cannot be said."""
    if isinstance(validation, Dataset):
        scores = {name: model.predict(validation) for name, model in models.items()}
        return choose_by_grades(scores, validation, settings.metric)
    rest, held_out = hold_out(log, validation, settings.seed)
    if held_out is None:
        return "nothing was held out to compare the two by"
    scores = {name: model.predict(dataset) for name, model in models.items()}
    try:
        return choose_by_clicks(scores, held_out, doubt(rest))
    except DataError as error:
        return str(error)
