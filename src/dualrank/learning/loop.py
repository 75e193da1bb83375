"""The training loop: one for all methods and all rankers.

A step draws lists, scores them, asks the correction which way the scores should move, and moves the
ranker and what is believed of position. What differs between naive training, inverse propensity
weighting, dual learning and training on grades is where labels come from (`feedback`) and what a
click is worth (`correction`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dualrank.corrections.correction import Correction
from dualrank.data.lists import PADDING
from dualrank.errors import CheckpointError, DataError, LostWorkerError, SettingsError, StoppedError
from dualrank.learning.checkpoint import (
    Checkpoint,
    read_checkpoint,
    require_same_run,
    write_checkpoint,
)
from dualrank.learning.device import choose_device
from dualrank.learning.feedback import Feedback, WholeFeedback
from dualrank.learning.validation import Measure, Validation
from dualrank.learning.workers import Workers
from dualrank.rankers.batch import Batch, Shown
from dualrank.rankers.ranker import Ranker, Step
from dualrank.sentences import reason_of, shortened
from dualrank.settings import TrainingSettings
from dualrank.storage import remove_unfinished

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
Watch = Callable[[int, "Loop"], None]
EARLY = (16, 8, 4, 2)
"""At which parts of the first stretch what stands on a ground is validated too."""
PROGRESS_EVERY = 10


def part_of(progress: Progress | None, number: int, count: int) -> Progress:
    """What the n-th of several equal pieces of work reports to, as a part of the whole."""

    def report(done: int, total: int) -> None:
        if progress:
            progress(number * total + done, count * total)

    return report


@dataclass
class History:
    """What happened in a run: the validation curve, the best step, and what was left out."""

    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    best_step: int = 0
    best_value: float | None = None
    best_measured: list[float] = field(default_factory=list)
    drawn: int = 0
    clicked: int = 0
    left_out: int = 0
    measure: str = ""
    """What the values are, in words; empty where no ranker was compared with another."""


class Loop:
    """A ranker, where its labels come from, what they are worth, and the loop over steps.

    `features` is the training matrix that the lists of `feedback` point into. `validation` says by
    what the best ranker is kept; without it the last one is. Everything is on one `device`, that of
    the settings unless given.
    """

    def __init__(
        self,
        ranker: Ranker,
        features: Tensor,
        feedback: Feedback,
        correction: Correction,
        settings: TrainingSettings,
        *,
        validation: Validation | None = None,
        device: torch.device | None = None,
    ) -> None:
        self.device = choose_device(settings.device) if device is None else device
        self.ranker, self.correction = ranker, correction
        self.settings = settings = settings.suited(correction.suits, ranker.suits)
        self.history = History()
        self.name = ""
        """The method, for who watches several."""
        self.steps = 1 if ranker.at_once else settings.steps
        self._feedback = feedback
        self._validation = validation
        self._measure: Measure = list if validation is None else validation.measuring(ranker)
        self.history.measure = getattr(validation, "name", "")
        self._rng = np.random.default_rng(settings.seed)
        self._best: dict[str, Tensor] | None = None
        self._believed: dict[str, Tensor] = {}
        self._loss, self._drawn = torch.zeros(()), 1
        # A ranker that takes everything at once is solved for by every worker alike.
        self._workers = Workers() if ranker.at_once else Workers.current()
        self._leads = Workers.current().leads
        self._whole: Batch | None = None
        self._all_shown: Shown | None = None
        if ranker.whole:
            features, queries = self._take_all(features)
            ranker.start(features.to(self.device), settings, queries)
        else:
            ranker.start(features.to(self.device), settings)
        correction.start(self.device)

    def _take_all(self, features: Tensor) -> tuple[Tensor, NDArray[np.int32] | None]:
        """Draw all lists once, and give the rows that they show, each with its query."""
        if not hasattr(self._feedback, "everything"):
            raise SettingsError(
                f"{type(self._feedback).__name__} has no method everything, by which a "
                f"{type(self.ranker).__name__} takes all lists at once"
            )
        source = cast(WholeFeedback, self._feedback)
        sessions = self.settings.steps * self.settings.batch_size
        whole = self._clicked(source.everything(sessions, self._rng))
        mask = whole.documents != PADDING
        rows, row_of = np.unique(whole.documents[mask], return_inverse=True)
        documents = np.full_like(whole.documents, PADDING)
        documents[mask] = row_of
        self._whole = replace(whole, documents=documents)
        queries = None
        if whole.queries is not None:
            queries = np.empty(len(rows), dtype=np.int32)
            queries[row_of] = np.broadcast_to(whole.queries[:, None], mask.shape)[mask]
        return features[torch.from_numpy(rows)], queries

    def step(self, done: float = 0.0) -> None:
        """One step of the Dual Learning Algorithm, or of what its correction makes of it.

        Ranker and belief learn from the same lists, each with the other's state from before.
        """
        batch = self._draw()
        self.history.drawn += batch.drawn
        if not batch.is_share:
            self.history.clicked += len(batch)
            if len(batch) == 0:
                return
        shown = self._shown(batch)
        signal = self.correction.signal(self.ranker.score(shown).detach(), shown)
        found = self.ranker.evidence(shown, signal)
        learned = signal.evidence
        if self.correction.learns_from_unseen and (
            (unseen := self.ranker.score_unseen(shown)) is not None
        ):
            learned = self.correction.position_evidence(unseen, shown)
        lists = signal.loss.new_tensor(len(shown.labels))
        # In one message, before anything moves: a worker that is lost here leaves a whole state.
        sums = self._workers.sum([lists, signal.loss, signal.clicks, *found, *learned])
        lists, self._loss, clicks, *rest = sums
        if batch.is_share:
            # What the others have drawn is known only now.
            self.history.clicked += int(lists)
            if int(lists) == 0:
                return
        self._drawn = batch.drawn
        step = Step(batch.drawn, clicks, done)
        self.ranker.move(rest[: len(found)], step)
        self.correction.learn(rest[len(found) :], step)

    def _draw(self) -> Batch:
        if self._whole is not None:
            return self._whole
        return self._clicked(self._feedback.draw(self.settings.batch_size, self._rng))

    def _clicked(self, batch: Batch) -> Batch:
        return batch.labelled() if self.correction.clicked_only else batch

    def _shown(self, batch: Batch) -> Shown:
        """This worker's share of a batch, as tensors; of all lists, made once."""
        if batch is not self._whole:
            return batch.share(self._workers.number, self._workers.count).to(self.device)
        if self._all_shown is None:
            self._all_shown = batch.share(self._workers.number, self._workers.count).to(self.device)
        return self._all_shown

    def run(
        self,
        *,
        checkpoint: Path | None = None,
        identity: dict[str, Any] | None = None,
        progress: Progress | None = None,
        watch: Watch | None = None,
    ) -> History:
        """Train to the last step, from the checkpoint if there is one, and keep the best ranker.

        `identity` says what makes this run this run (the plan, the data's fingerprint): a
        checkpoint of another run is refused. Where `progress` raises a `StoppedError`, the step
        that was just done is saved before the run ends. `watch` sees the loop after every step.
        """
        threads = torch.get_num_threads()
        torch.set_num_threads(self.settings.threads)
        try:
            self._run_steps(_Saves(self, checkpoint, identity or {}), progress, watch)
        finally:
            torch.set_num_threads(threads)
        return self._finish()

    def _run_steps(self, saves: _Saves, progress: Progress | None, watch: Watch | None) -> None:
        done = saves.resume()
        if done == 0 and self._validation and self.correction.has_ground:
            self._keep_if_best(0, self._validation)
        for step in range(done + 1, self.steps + 1):
            random = self._rng.bit_generator.state
            try:
                self.step((step - 1) / self.steps)
            except LostWorkerError as error:
                self._rng.bit_generator.state = random
                saves.leave(error, step - 1)
            last = step == self.steps
            if self._validation and (last or self._is_time_to_look(step)):
                self._keep_if_best(step, self._validation)
            if watch:
                watch(step, self)
            if (step % self.settings.checkpoint_every == 0 or last) and self._leads:
                saves.save(step)
            if progress and (step % PROGRESS_EVERY == 0 or last):
                self._report(progress, saves, step)

    def _report(self, progress: Progress, saves: _Saves, step: int) -> None:
        """Tell how far it is; when a worker was asked to stop, all of them save and leave."""
        stopped = None
        try:
            progress(step, self.steps)
        except StoppedError as error:
            stopped = error
        try:
            stop = self._workers.any(stopped is not None)
        except LostWorkerError as error:
            saves.leave(error, step)
        if stop:
            if self._leads:
                saves.save(step)
            raise stopped or StoppedError(f"another worker was asked to stop at step {step}")

    def recorded(self, step: int) -> dict[str, float]:
        """The loss per session of this step, what is believed, and the latest validation."""
        values = {"loss": float(self._loss) / self._drawn}
        believed = self.correction.propensity()
        if believed is not None:
            for position, value in enumerate(believed.examination.tolist(), 1):
                values[f"examination/{position:02}"] = value
        if self.history.steps and self.history.steps[-1] == step:
            values["validation"] = self.history.values[-1]
        return values

    def _keep_if_best(self, step: int, validation: Validation) -> None:
        measured = self._measure()
        value = validation.value(measured)
        self.history.steps.append(step)
        self.history.values.append(value)
        if not math.isfinite(value):
            return  # Nothing would be better than that, and nothing worse.
        if self._best is None or self._is_better(measured, validation):
            self.history.best_measured = measured
            self.history.best_value, self.history.best_step = value, step
            self._best = _copied(self.ranker.tensors())
            if self.correction.is_likelihood:
                self._believed = _copied(self.correction.state())

    def _is_time_to_look(self, step: int) -> bool:
        """Whether to validate; on a ground also early, where few clicks have taught enough."""
        every = self.settings.validate_every
        early = [every // part for part in EARLY] if self.correction.has_ground else []
        return step % every == 0 or step in early

    def _is_better(self, measured: list[float], validation: Validation) -> bool:
        """Whether this is better than the best so far; the start is left only where that is clear.

        What stands on a ground begins as a copy of the logging ranker. Steps that are ahead of it
        by luck, on few clicks, would cost its quality.
        """
        best = self.history.best_measured
        lead = validation.value(measured) - validation.value(best)
        return lead > (validation.doubt(measured, best) if self.history.best_step == 0 else 0.0)

    def _finish(self) -> History:
        if self.history.clicked == 0:
            raise DataError(
                f"none of the {self.history.drawn} sessions drawn had a click: nothing was learned"
            )
        self.history.left_out = self.ranker.left_out + self.correction.left_out
        if self.history.left_out:
            logger.warning("left out %d steps with infinite gradients", self.history.left_out)
        if not self.ranker.is_finite():
            raise SettingsError(
                "the solution is no finite number: scale the features"
                if self.ranker.at_once
                else f"training diverged at learning rate {self.settings.rate:g}; lower it"
            )
        if self.ranker.left_out >= self.steps:
            raise SettingsError(
                f"each of the {self.steps} steps was left out, since its gradient was not finite: "
                "nothing was learned; scale the features, or lower the learning rate"
            )
        if self._best is None:
            self.history.best_step = self.steps
        else:
            self.ranker.load_tensors(self._best)
            if self._believed:
                self.correction.load_state(self._believed)
        self.ranker.finish()
        return self.history

    def state(self, step: int, identity: dict[str, Any]) -> Checkpoint:
        """Everything that is needed to continue after this step."""
        groups = {
            "ranker": self.ranker.state(),
            "correction": self.correction.state(),
            "best": self._best or {},
            "believed": self._believed,
        }
        tensors = {f"{group}.{k}": v for group, held in groups.items() for k, v in held.items()}
        values = {
            "step": step,
            "identity": identity,
            "random": self._rng.bit_generator.state,
            "history": asdict(self.history),
        }
        return Checkpoint(tensors, values)

    def load_state(self, saved: Checkpoint) -> int:
        """Go on from what `state` returned, after the step that it gives back."""
        step = saved.values["step"]
        if type(step) is not int or not 0 <= step <= self.steps:
            raise ValueError(f"it was left after step {shortened(step)} of {self.steps}")
        self._best = saved.group("best") or None
        self._believed = saved.group("believed")
        # What the end of the training takes over must fit as well: better to know it now.
        if self._best:
            self.ranker.load_tensors(self._best)
        if self._believed:
            self.correction.load_state(self._believed)
        self.ranker.load_state(saved.group("ranker"))
        self.correction.load_state(saved.group("correction"))
        self._rng.bit_generator.state = saved.values["random"]
        self.history = History(**{**saved.values["history"], "measure": self.history.measure})
        return step


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


@dataclass(frozen=True)
class _Saves:
    """Where a run is kept while it goes on; nowhere without a path."""

    loop: Loop
    path: Path | None
    identity: dict[str, Any]

    def resume(self) -> int:
        """The step that was done last, 0 in a new run."""
        if self.path is None:
            return 0
        if Workers.current().leads:
            remove_unfinished(self.path)
        if not self.path.exists():
            return 0
        saved = read_checkpoint(self.path)
        try:
            require_same_run(self.path, saved.values["identity"], self.identity)
            step = self.loop.load_state(saved)
        except (
            *(ArithmeticError, AttributeError, LookupError, MemoryError),
            *(TypeError, ValueError, RuntimeError),
        ) as error:
            raise CheckpointError(
                f"{self.path}: does not hold what this training would have written "
                f"({reason_of(error)}); delete it to start anew"
            ) from error
        logger.info("continuing at step %d of %d", step, self.loop.steps)
        return step

    def save(self, step: int) -> None:
        """Replace the checkpoint."""
        if self.path is not None:
            write_checkpoint(self.path, self.loop.state(step, self.identity))

    def leave(self, error: LostWorkerError, step: int) -> NoReturn:
        """Save, whoever is left: all workers hold the same state, and the leader may be gone."""
        self.save(step)
        where = "nothing was saved" if self.path is None else f"the same training goes on at {step}"
        raise LostWorkerError(f"{error} at step {step} of {self.loop.steps}; {where}")
