"""Several processes that train one model, each on its share of every batch.

All workers draw the same batch from the same random state, score every n-th list of it, and add up
their gradients: n workers make the step of one, to rounding, and a checkpoint of theirs is a
checkpoint of one. `torchrun` starts them; torch.distributed carries the sums.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from dualrank.errors import LostWorkerError, SettingsError
from dualrank.learning.feedback import Batch


@dataclass(frozen=True)
class Team:
    """Who this worker is, and how many there are."""

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls) -> Team:
        """The team that this process has joined, or a team of one."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def leads(self) -> bool:
        """Whether this worker writes files and speaks to people."""
        return self.rank == 0

    def share(self, batch: Batch) -> Batch:
        """Every n-th list of a batch; `drawn` stays that of the whole."""
        if self.size == 1:
            return batch
        mine = slice(self.rank, None, self.size)
        contexts = None if batch.contexts is None else np.ascontiguousarray(batch.contexts[mine])
        return Batch(
            np.ascontiguousarray(batch.documents[mine]),
            np.ascontiguousarray(batch.labels[mine]),
            batch.drawn,
            contexts,
        )

    def sum(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """The sums over all workers, in one message."""
        if self.size == 1:
            return tensors
        together = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        try:
            dist.all_reduce(together)
        except RuntimeError as error:
            raise LostWorkerError("another worker of this training has gone") from error
        parts = torch.split(together, [tensor.numel() for tensor in tensors])
        return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]

    def any(self, here: bool) -> bool:
        """Whether it is so in any of the workers."""
        (count,) = self.sum([torch.tensor([float(here)])])
        return bool(count > 0)


@contextmanager
def team_of_torchrun() -> Iterator[Team]:
    """Join the workers that `torchrun` started, if it did; a team of one otherwise.

    Sums of tensors in a GPU's memory go by nccl, all others by gloo.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Team()
        return
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    except (RuntimeError, ValueError) as error:
        raise SettingsError(f"the workers of torchrun do not find each other: {error}") from error
    try:
        yield Team.current()
    finally:
        dist.destroy_process_group()
