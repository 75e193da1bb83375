"""The training loop: one for all methods.

What differs between naive training, inverse propensity weighting, dual learning and training on
grades is where labels come from (`feedback`) and how much a click counts (`weighting`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dualrank.corrections.losses import masked_log_softmax, softmax_cross_entropy
from dualrank.corrections.weighting import Weighting
from dualrank.data.lists import PADDING
from dualrank.errors import DataError, LostWorkerError, SettingsError, StoppedError
from dualrank.learning.checkpoint import (
    Checkpoint,
    read_checkpoint,
    require_same_run,
    write_checkpoint,
)
from dualrank.learning.device import choose_device
from dualrank.learning.feedback import Batch, Feedback
from dualrank.learning.validation import Validation
from dualrank.learning.workers import Team
from dualrank.rankers.network import Network
from dualrank.rankers.optimizer import Optimizer
from dualrank.settings import TrainingSettings
from dualrank.storage import remove_unfinished

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
Record = Callable[[int, Mapping[str, float]], None]
PROGRESS_EVERY = 10
RECORD_EVERY = 20


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


class Trainer:
    """A ranker, where its labels come from and how they are weighted, and the loop over steps.

    `features` is the scaled training matrix that the lists of `feedback` point into. `validation`
    says by what the best ranker is kept; without it the last one is. Everything is on one `device`,
    that of the settings unless given.
    """

    def __init__(
        self,
        ranker: Network,
        features: Tensor,
        feedback: Feedback,
        weighting: Weighting,
        settings: TrainingSettings,
        *,
        validation: Validation | None = None,
        device: torch.device | None = None,
    ) -> None:
        self.device = choose_device(settings.device) if device is None else device
        self.ranker = ranker.to(self.device)
        self.weighting = weighting
        self.weighting.to(self.device)
        self.history = History()
        self._features = features.to(self.device)
        self._feedback = feedback
        self._settings = settings
        self._validation = validation
        self._rng = np.random.default_rng(settings.seed)
        self._optimizer = Optimizer(ranker, settings.learning_rate, settings)
        self._best: dict[str, Tensor] | None = None
        self._loss = torch.zeros(())
        self._team = Team.current()
        rows = settings.batch_size * feedback.lists.depth
        self._gathered = self._features.new_empty(rows, features.shape[1])

    def run(
        self,
        *,
        checkpoint: Path | None = None,
        identity: dict[str, Any] | None = None,
        progress: Progress | None = None,
        record: Record | None = None,
    ) -> History:
        """Train to the last step, from the checkpoint if there is one, and keep the best ranker.

        `identity` says what else makes this run this run (the data's fingerprint, the method): a
        checkpoint of another run is refused. Where `progress` raises a `StoppedError`, the step
        that was just done is saved before the run ends. `record` is told the loss, the curve and
        the validation as they come.
        """
        identity = {**asdict(self._settings), **(identity or {})}
        del identity["device"]  # a run may go on elsewhere
        threads = torch.get_num_threads()
        torch.set_num_threads(self._settings.threads)
        try:
            self._run_steps(checkpoint, identity, progress, record)
        finally:
            torch.set_num_threads(threads)
        return self._finish()

    def _run_steps(
        self,
        checkpoint: Path | None,
        identity: dict[str, Any],
        progress: Progress | None,
        record: Record | None,
    ) -> None:
        settings = self._settings
        start = 0
        if checkpoint is not None and self._team.leads:
            remove_unfinished(checkpoint)
        if checkpoint is not None and checkpoint.exists():
            start = self._resume(checkpoint, identity)
            logger.info("continuing at step %d of %d", start, settings.steps)
        for step in range(start + 1, settings.steps + 1):
            random = self._rng.bit_generator.state
            try:
                self.step((step - 1) / settings.steps)
            except LostWorkerError as error:
                self._rng.bit_generator.state = random
                self._leave(error, checkpoint, step - 1, identity)
            last = step == settings.steps
            if self._validation and (step % settings.validate_every == 0 or last):
                self._keep_if_best(step, self._validation)
            if record and (step % RECORD_EVERY == 0 or last):
                record(step, self._recorded(step))
            if (step % settings.checkpoint_every == 0 or last) and self._team.leads:
                self._save(checkpoint, step, identity)
            if progress and (step % PROGRESS_EVERY == 0 or last):
                self._report(progress, checkpoint, step, identity)

    def _save(self, checkpoint: Path | None, step: int, identity: dict[str, Any]) -> None:
        if checkpoint is not None:
            write_checkpoint(checkpoint, self.state(step, identity))

    def _leave(
        self, error: LostWorkerError, checkpoint: Path | None, step: int, identity: dict[str, Any]
    ) -> NoReturn:
        """Save, whoever is left: all workers hold the same state, and the leader may be gone."""
        self._save(checkpoint, step, identity)
        where = "nothing was saved" if checkpoint is None else f"the same command goes on at {step}"
        raise LostWorkerError(f"{error} at step {step} of {self._settings.steps}; {where}")

    def _report(
        self, progress: Progress, checkpoint: Path | None, step: int, identity: dict[str, Any]
    ) -> None:
        """Tell how far it is; when a worker was asked to stop, all of them save and leave."""
        stopped = None
        try:
            progress(step, self._settings.steps)
        except StoppedError as error:
            stopped = error
        try:
            stop = self._team.any(stopped is not None)
        except LostWorkerError as error:
            self._leave(error, checkpoint, step, identity)
        if stop:
            if self._team.leads:
                self._save(checkpoint, step, identity)
            raise stopped or StoppedError(f"another worker was asked to stop at step {step}")

    def step(self, done: float = 0.0) -> None:
        """One step of the Dual Learning Algorithm, or of what its weighting makes of it.

        Both models learn from the same batch, each with the other's weights from before the step.
        """
        batch = self._feedback.draw(self._settings.batch_size, self._rng)
        for optimizer in self._optimizers().values():
            optimizer.set_progress(done)
        if len(batch.documents):
            self._learn(batch)
        self.history.drawn += batch.drawn
        self.history.clicked += len(batch.documents)

    def _learn(self, batch: Batch) -> None:
        batch = self._team.share(batch)
        scores, mask = self._score(batch)
        labels = self._here(batch.labels)
        log_relevance = masked_log_softmax(scores, mask)
        contexts = None if batch.contexts is None else self._here(batch.contexts)
        weights = self.weighting.weights(contexts)
        loss = softmax_cross_entropy(log_relevance, labels, weights).sum()
        here = [
            *self._optimizer.gradients(loss),
            loss.detach(),
            (weights * labels).sum(),
            *self.weighting.evidence(log_relevance.detach(), labels, mask, contexts),
        ]
        # In one message, before anything moves: a worker that is lost here leaves a whole state.
        together = self._team.sum(here)
        own = len(self._optimizer.parameters)
        self._loss, clicks = together[own : own + 2]
        self._optimizer.move(together[:own], batch.drawn, clicks)
        self.weighting.learn(together[own + 2 :], batch.drawn)

    def _score(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Scores laid out like the lists; padding is never scored."""
        shown = batch.documents != PADDING
        full = bool(shown.all())
        rows = self._here(batch.documents.ravel() if full else batch.documents[shown])
        gathered = torch.index_select(self._features, 0, rows, out=self._gathered[: len(rows)])
        scores, mask = self.ranker(gathered), self._here(shown)
        if full:
            return scores.view(shown.shape), mask
        return scores.new_zeros(shown.shape).masked_scatter(mask, scores), mask

    def _here(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def _recorded(self, step: int) -> dict[str, float]:
        """The loss per session of this step, what is believed, and the latest validation."""
        values = {"loss": float(self._loss) / self._settings.batch_size}
        believed = self.weighting.propensity()
        if believed is not None:
            for position, value in enumerate(believed.examination.tolist(), 1):
                values[f"examination/{position:02}"] = value
        if self.history.steps and self.history.steps[-1] == step:
            values["validation"] = self.history.values[-1]
        return values

    def _keep_if_best(self, step: int, validation: Validation) -> None:
        measured = validation.measure(self.ranker)
        value = validation.value(measured)
        self.history.steps.append(step)
        self.history.values.append(value)
        if self._best is None or value > validation.value(self.history.best_measured):
            self.history.best_measured = measured
            self.history.best_value, self.history.best_step = value, step
            self._best = {k: v.detach().clone() for k, v in self.ranker.state_dict().items()}

    def _finish(self) -> History:
        if self.history.clicked == 0:
            raise DataError(
                f"none of the {self.history.drawn} sessions drawn had a click: nothing was learned"
            )
        self.history.left_out = sum(o.left_out for o in self._optimizers().values())
        if self.history.left_out:
            logger.warning("left out %d steps with infinite gradients", self.history.left_out)
        if not all(torch.isfinite(p).all() for p in self.ranker.parameters()):
            raise SettingsError(
                f"training diverged at learning rate {self._settings.learning_rate:g}; lower it"
            )
        if self._best is None:
            self.history.best_step = self._settings.steps
        else:
            self.ranker.load_state_dict(self._best)
        self.ranker.cpu()
        return self.history

    def _optimizers(self) -> dict[str, Optimizer]:
        beside = self.weighting.optimizer()
        return {"ranker": self._optimizer, **({"propensity": beside} if beside else {})}

    def state(self, step: int, identity: dict[str, Any]) -> Checkpoint:
        """Everything that is needed to continue after this step."""
        groups = {name: o.state() for name, o in self._optimizers().items()}
        if self._best is not None:
            groups["best"] = self._best
        tensors = {f"{group}.{k}": v for group, held in groups.items() for k, v in held.items()}
        left_out = {name: o.left_out for name, o in self._optimizers().items()}
        values = {
            "step": step,
            "identity": identity,
            "random": self._rng.bit_generator.state,
            "history": asdict(self.history),
            "left_out": left_out,
        }
        return Checkpoint(tensors, values)

    def _resume(self, path: Path, identity: dict[str, Any]) -> int:
        saved = read_checkpoint(path)
        require_same_run(path, saved.values["identity"], identity)
        for name, optimizer in self._optimizers().items():
            optimizer.load_state(saved.group(name))
            optimizer.left_out = saved.values["left_out"][name]
        self._rng.bit_generator.state = saved.values["random"]
        self.history = History(**saved.values["history"])
        self._best = saved.group("best") or None
        return int(saved.values["step"])
