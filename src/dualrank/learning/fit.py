"""`dualrank.fit`: a click log and features in, a model out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.features import read_features
from dualrank.data.frames import is_frame
from dualrank.data.inputs import dataset_from, log_and_dataset
from dualrank.data.shards.sharded_log import ShardedLog, is_sharded
from dualrank.errors import SettingsError
from dualrank.learning.auto import fit_best
from dualrank.learning.feedback import Feedback
from dualrank.learning.loop import Progress, Watch
from dualrank.learning.material import Source, source_of
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.learning.train_one import train_one
from dualrank.learning.valued import fit_valued
from dualrank.learning.whole_source import LabelSource, WholeSource
from dualrank.progress import shows_progress


@shows_progress("training")
def fit(
    source: ClickLog | Feedback | ShardedLog | Any,
    dataset: Dataset | Any | None = None,
    plan: Plan | None = None,
    *,
    start: Model | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> Model:
    """Train a ranker from clicks.

    What is asked for is a `Plan`, or its fields as keywords: `fit(log, data, method="dla",
    ranker=DNN((64, 32)), validation=judged)`; settings of the loop may be given directly
    (`steps=500`). `source` is a log, or any source of labels over the documents of `dataset`
    (`SimulatedClicks`, `Judgments`, or one's own), from which no clicks can be held out. Logs,
    features and judged queries may also be files or data frames. A log in shards brings its
    features, and is drawn from where it lies on disk (`learning/sharded`).

    With weights of `events` the method learns its propensity from clicks, and a second ranker
    learns from what the events are worth (`learning/valued.py`).

    The propensity of the model is that of the last step, whichever ranker is kept; likelihoods keep
    that of the best step, by which it was judged. With `start`,
    learning begins where that model ended, on this source alone. An interrupted training of a log
    goes on from `checkpoint` where there is one. `progress` hears how far it is, `watch` sees the
    loop after every step.

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> model = dr.fit(log, data.train, method="dla", ranker=dr.Linear(), steps=300)
    >>> model.propensity.examination.shape
    (10,)
    >>> scores = model.predict(data.test)
    >>> dr.evaluate(scores, data.test, "ndcg@10")["ndcg@10"] > 0.5
    True
    """
    if is_sharded(source):
        source = ShardedLog.open(source, only=())
    if isinstance(source, ShardedLog | Source):
        require_alone(dataset, start)
        known = source if isinstance(source, ShardedLog) else source.sample.dataset
        names = known.feature_names
    elif dataset is None:
        raise SettingsError("the log needs the features of its documents beside it: give features=")
    else:
        source, dataset = _inputs(source, dataset, start)
        names = dataset.feature_names
    if is_frame(options.get("validation")):
        options["validation"] = read_features(options["validation"], names=names)
    plan = (plan or Plan()).with_options(**options)
    if isinstance(plan.validation, Dataset):
        plan = replace(plan, validation=plan.validation.with_features(names))
    source = source_of(source, dataset, plan)
    path = None if checkpoint is None else Path(checkpoint)
    heard: dict[str, Any] = {"checkpoint": path, "progress": progress, "watch": watch}
    if plan.events is not None:
        if not isinstance(source, WholeSource) or start is not None:
            raise SettingsError(
                "weighted events are learned from in two stages, from a log and from no model"
            )
        return fit_valued(source, plan, fit, **heard)
    if plan.way.name != "auto":
        return train_one(source, plan, start=start, **heard)
    if isinstance(source, LabelSource) or start is not None:
        raise SettingsError(
            "method auto trains its candidates anew, on a log, and chooses by clicks held out of it"
        )
    return fit_best(source, source.sample.dataset, plan, **heard)[0]


def require_alone(dataset: Any, start: Model | None = None) -> None:
    """Refuse what cannot be beside a log in shards."""
    if dataset is not None:
        raise SettingsError(
            "a log in shards has the features of its documents: give none beside it; features are "
            "joined when the log is reduced"
        )
    if start is not None:
        raise SettingsError("training on a log in shards goes on from no model")


def _inputs(source: Any, dataset: Any, start: Model | None) -> tuple[ClickLog | Feedback, Dataset]:
    """A log or labels, and the documents that they point to, with the features of a model."""
    if _is_labels(source):
        dataset = dataset_from(dataset)
    else:
        source, dataset = log_and_dataset(source, dataset)
    return source, dataset if start is None else dataset.with_features(start.feature_names)


def _is_labels(source: Any) -> bool:
    """Whether labels are drawn from this, rather than read."""
    return not isinstance(source, ClickLog) and hasattr(source, "lists")
