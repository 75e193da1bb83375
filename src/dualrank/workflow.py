"""`dualrank.train`: from files to a model directory with its report, as the command does it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.features import read_features
from dualrank.data.inputs import log_and_dataset
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.read_log import read_log
from dualrank.data.shards.sharded_log import ShardedLog, is_sharded
from dualrank.diagnostics.diagnosis import Diagnosis, diagnose
from dualrank.diagnostics.leakage import warn_of_leakage
from dualrank.diagnostics.trained_pair import TrainedPair
from dualrank.errors import DataError, SettingsError
from dualrank.evaluation.click_check import Lead
from dualrank.learning.auto import IMITATION, fit_best
from dualrank.learning.choice import NAIVE, choose
from dualrank.learning.device import choose_device
from dualrank.learning.fit import fit, require_alone
from dualrank.learning.leads import draw_leads, leads_of
from dualrank.learning.material import Logged
from dualrank.learning.model import Model
from dualrank.learning.model_card import about_model, model_parts
from dualrank.learning.plan import Plan
from dualrank.learning.sharded.mapped_feedback import require_drawn
from dualrank.learning.sharded.sharded_source import ShardedSource
from dualrank.learning.tensorboard import event_files, require_tensorboard
from dualrank.learning.whole_source import WholeSource
from dualrank.learning.workers import leads_torchrun, workers_of_torchrun
from dualrank.progress import Bars, current_bars
from dualrank.report import training_verdict, write_training_report
from dualrank.showing.card import card, said
from dualrank.showing.interval_rows import axes_of_rows
from dualrank.showing.visible import one_line
from dualrank.storage import write_text, writing_alone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COMPARED = "twin"
"""The folder, and the part of the manifest, with the ranker without correction."""


@dataclass(frozen=True, eq=False)
class Training:
    """What `train` gives: the model, what it was compared with, and what the log is good for.

    `naive` is the same ranker without correction, where one was trained; `diagnosis` what
    `diagnose` says of the log, where it was asked.

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     training = dr.train(log, data.train, folder, method="dla", ranker=dr.Linear(),
    ...                         steps=50, diagnosis=False)
    >>> len(training.verdict) > 0  # sentences
    True
    """

    model: Model
    log: ClickLog | ShardedLog
    naive: Model | None = None
    diagnosis: Diagnosis | None = None
    is_written: bool = True
    """Whether this process wrote the files: of several workers, the first one does."""

    def __repr__(self) -> str:
        return f"Training({self.model!r}: {one_line(self.verdict[0], 200)})"

    def _repr_html_(self) -> str:
        """A card for notebooks: whether the correction gained, and the model under it."""
        judged = [] if self.diagnosis is None else [f"The log: {self.diagnosis.verdict}."]
        parts = said(*self.verdict, *judged), *model_parts(self.model)
        return card("Training", about_model(self.model), *parts)

    @property
    def leads(self) -> dict[str, Lead]:
        """How far methods that were trained are ahead of no correction, where that was compared."""
        return leads_of(self.model.training)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the leads over no correction with their intervals against zero.

        A lead whose interval lies right of zero is a clear one, by the measure of the verdict.
        Needs matplotlib.
        """
        leads = self.leads
        if not leads:
            raise DataError(f"there is no lead to draw. {' '.join(self.verdict)}")
        ax = axes_of_rows(ax, len(leads))
        draw_leads(ax, leads, str(self.model.training.get("method")))
        return ax

    @property
    def verdict(self) -> list[str]:
        """Whether the correction is worth something, in sentences."""
        return training_verdict(self.model.training)


def train(
    log: Any,
    features: Dataset | str | Path | Any | None = None,
    out: str | Path | None = None,
    plan: Plan | None = None,
    *,
    reading: LogOptions | None = None,
    compare: bool = True,
    remember: bool = False,
    diagnosis: bool = True,
    tensorboard: bool = False,
    resume: bool = True,
    max_grade: float | None = None,
    bars: Bars | None = None,
    command: str = "",
    **options: Any,
) -> Training:
    """Read a log and features, train, compare with no correction, diagnose, and write it all.

    `log` is a `ClickLog`, or whatever `read_log` reads, as `reading` says; `features` a `Dataset`,
    a file or a data frame of them. A log in shards (`dualrank reduce --shards`) has features of its
    own: none are given beside it. `options` are those of a `Plan` and its settings; `validation`
    may also be a file or a frame of judged queries, with grades up to `max_grade`. What contradicts
    itself is refused before anything is read. Features that may give the position away are named in
    a warning.

    Shards are trained on where they lie on disk. What is no step of training is done on a sample of
    them in memory, as `model.training["shards"]` says: keeping the best ranker, comparing it with
    the one without correction, and diagnosing the log.

    With `compare` the same ranker is trained without correction, and queries that neither was
    trained on tell whether the correction gains; `diagnosis` uses the same rankers and queries.
    With `remember` lists of the log are kept in the model directory, for `Model.update`.
    `out` gets the model directory with `report.html`, `diagnosis.json`, and the compared ranker
    in `twin/`; no other training may write there meanwhile. An interrupted run goes on from its
    checkpoint there, unless `resume` is false.
    Under `torchrun` all workers call this alike. `bars` shows progress: a function from the name of
    a piece of work to a context manager that gives what hears of it; without it, those of
    `show_progress`, or of the notebook.

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     training = dr.train(log, data.train, folder, method="dla",
    ...                         ranker=dr.Linear(), steps=50)
    ...     scores = dr.Model.load(folder).predict(data.test)
    >>> training.naive is not None, training.diagnosis is not None
    (True, True)
    """
    bars = bars or current_bars()
    judged = options.pop("validation", None)
    if isinstance(judged, int | float | Dataset):
        options["validation"], judged = judged, None
    plan = (plan or Plan(method="auto")).with_options(**options)
    choose_device(plan.settings.device)
    if tensorboard:
        require_tensorboard()
    if out is None:
        raise SettingsError("say where the model is to be written: out=…")
    if is_sharded(log) or isinstance(log, ShardedLog):
        require_alone(features)
        require_drawn(plan)
        if remember:
            raise SettingsError(
                "lists of a log in shards are not kept with a model; train without remember=True"
            )
        log = _opened(log, _asked(reading or LogOptions(), plan))
    elif features is None:
        raise SettingsError("the log needs the features of its documents beside it: give features=")
    folder = Path(out)
    with writing_alone(folder) if leads_torchrun() else nullcontext():
        if not resume and leads_torchrun():
            _remove_checkpoints(folder)
        documents = log if isinstance(log, ShardedLog) else _features(features, bars)
        if isinstance(documents, Dataset):
            log = _log(log, documents, plan, reading or LogOptions(), bars)
        if judged is not None:
            like = {"count": documents.feature_count, "names": documents.feature_names}
            plan = replace(plan, validation=_features(judged, bars, max_grade=max_grade, **like))
        with workers_of_torchrun() as workers:
            source = _source(log, documents, plan, bars)
            known, seed = source.sample, plan.settings.seed
            work = _Work(source, folder, bars, tensorboard and workers.leads)
            if workers.leads:
                warn_of_leakage(known.log, known.dataset, seed)
            models, model = work.train_models(plan, compare)
            if remember:
                model = model.remember(known.log, known.dataset, seed=seed)
        if not workers.leads:
            return Training(model, source.log, is_written=False)
        return _written(work, models, model, plan, compare, diagnosis, command)


def _written(
    work: _Work,
    models: dict[str, Model],
    model: Model,
    plan: Plan,
    compare: bool,
    diagnosis: bool,
    command: str,
) -> Training:
    """Diagnose the log, and write all that was found."""
    folder, bars = work.folder, work.bars
    naive = models.get(NAIVE) if compare and plan.way.name != NAIVE else None
    shutil.rmtree(folder / COMPARED, ignore_errors=True)
    if naive is not None:
        naive.save(folder / COMPARED)
    (folder / "diagnosis.json").unlink(missing_ok=True)
    model.save(folder)
    found = None
    if diagnosis:
        pair, known = _pair(models, work, plan), work.source.sample
        sessions = work.source.log.sessions
        with bars("diagnosing the log") as progress:
            found = diagnose(
                known.log,
                known.dataset,
                seed=plan.settings.seed,
                trained=pair,
                progress=progress,
                sampled_of=None if known.log.sessions == sessions else sessions,
            )
        write_text(folder / "diagnosis.json", found.to_json())
    write_training_report(model, folder / "report.html", found, command, twin=naive is not None)
    _remove_checkpoints(folder)
    return Training(model, work.source.log, naive, found)


@dataclass(frozen=True, eq=False)
class _Work:
    """What all models of a training share."""

    source: Logged
    folder: Path
    bars: Bars
    events: bool

    def train_models(self, plan: Plan, compare: bool) -> tuple[dict[str, Model], Model]:
        """Every model that is trained, by its method, and the one that was asked for."""
        method = plan.way.name
        if method == "auto" and plan.events is None:
            with self._followed("training", "model", by_method=True) as following:
                model, models = fit_best(
                    self.source,
                    self.source.sample.dataset,
                    plan,
                    checkpoint=self.folder / "checkpoint.safetensors",
                    **following,
                )
            return models, model
        by_method = plan.way.ground is not None or plan.events is not None
        with self._followed("training", "model", by_method=by_method) as following:
            path = self.folder / "checkpoint.safetensors"
            model = fit(self.source, None, plan, checkpoint=path, **following)
        # Single documents say nothing without a correction: there is none to compare with.
        single = not (self.source.sample.lists.mask.sum(axis=1) > 1).any()
        if not compare or method == NAIVE or single:
            return {method: model}, model
        with self._followed("training without correction, to compare", COMPARED) as following:
            path = self.folder / "checkpoint-twin.safetensors"
            without = plan.for_method(NAIVE)
            naive = fit(self.source, None, without, checkpoint=path, **following)
        models = {method: model, NAIVE: naive}
        described: dict[str, Any] = {"history": naive.training.get("history")}
        try:
            described |= choose(models, self.source, self.source.sample.dataset, plan).to_dict()
        except DataError as error:
            described["why"] = str(error)
        return models, replace(model, training={**model.training, COMPARED: described})

    @contextmanager
    def _followed(
        self, work: str, events: str, *, by_method: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Who hears of a training: a bar, and event files where they are wanted."""
        folder = self.folder / "tensorboard" / events if self.events else None
        with (
            self.bars(work) as progress,
            event_files(folder, by_method=by_method) as watch,
        ):
            yield {"progress": progress, "watch": watch}


def _features(source: Any, bars: Bars, **known: Any) -> Dataset:
    if isinstance(source, Dataset):
        return source
    named = isinstance(source, str | Path)
    with bars(f"reading {Path(source).name}" if named else "reading the features") as progress:
        return read_features(source, progress=progress, **known)


def _source(log: Any, documents: Dataset | ShardedLog, plan: Plan, bars: Bars) -> Logged:
    """What is trained on: a log with its documents, or one that brings them, in shards."""
    if isinstance(documents, Dataset):
        return WholeSource.of(log, documents, plan)
    with bars(f"verifying {documents.folder.name}") as progress:
        return ShardedSource.of(documents, plan.held_out, plan.settings.seed, progress)


def _log(source: Any, dataset: Dataset, plan: Plan, reading: LogOptions, bars: Bars) -> ClickLog:
    if isinstance(source, ClickLog):
        return log_and_dataset(source, dataset)[0]
    named = isinstance(source, str | Path)
    with bars(f"reading {Path(source).name}" if named else "reading the log") as progress:
        return read_log(source, dataset, options=_asked(reading, plan), progress=progress)


def _asked(reading: LogOptions, plan: Plan) -> LogOptions:
    """How a log is read, with the column and the events that a plan needs."""
    if plan.context is not None and plan.context not in reading.contexts:
        reading = replace(reading, contexts=(*reading.contexts, plan.context))
    if plan.events is not None:
        reading = replace(reading, event_kinds=(*reading.event_kinds, *plan.events))
    return reading


def _opened(log: Any, asked: LogOptions) -> ShardedLog:
    """A log in shards, which must have kept all that it is asked for."""
    if not isinstance(log, ShardedLog):
        log = ShardedLog.open(log, only=())
    asked.require_reduced(str(log.folder))
    asked.require_kept(str(log.folder), log.columns, log.events)
    return log


def _pair(models: dict[str, Model], work: _Work, plan: Plan) -> TrainedPair | None:
    """The rankers that were trained already, for a diagnosis that needs two and an imitation."""
    # Who holds the other shards has gone by now.
    source = work.source.sample
    joint = next((name for name in ("dla", "likelihood") if name in models), None)
    # What was trained on weighted events tells nothing about clicks.
    if plan.events is not None or source.held_out is None or joint is None or NAIVE not in models:
        return None
    copy = models.get(IMITATION)
    if copy is None:
        with work.bars("imitating the logging ranker, to diagnose") as progress:
            copy = fit(source, None, plan.for_method(IMITATION), progress=progress)
    naive, dual, imitated = (
        m.predict(source.dataset) for m in (models[NAIVE], models[joint], copy)
    )
    limit, seed = plan.settings.max_weight, plan.settings.seed
    return TrainedPair(naive, dual, source.held_out, limit, seed, imitated)


def _remove_checkpoints(folder: Path) -> None:
    for left in folder.glob("checkpoint*.safetensors"):
        left.unlink(missing_ok=True)
