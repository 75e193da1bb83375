"""Several processes that train one model, each on its share of every batch.

All workers draw the same batch from the same random state, score every n-th list of it, or those
that lie in their own shards, and add up what they found: n workers make the step of one, to
rounding, and a checkpoint of theirs is a checkpoint of one. `torchrun` starts them;
torch.distributed carries the sums.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from dualrank.errors import LostWorkerError, SettingsError


@dataclass(frozen=True)
class Workers:
    """Which of the workers this process is, and how many there are."""

    number: int = 0
    count: int = 1

    @classmethod
    def current(cls) -> Workers:
        """The workers that this process has joined, or it alone."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def leads(self) -> bool:
        """Whether this worker writes files and speaks to people."""
        return self.number == 0

    def sum(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """The sums over all workers, in one message."""
        if self.count == 1:
            return tensors
        message = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        with _all_there():
            dist.all_reduce(message)
        parts = torch.split(message, [tensor.numel() for tensor in tensors])
        return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]

    def any(self, mine: bool) -> bool:
        """Whether it is so in any of the workers."""
        (count,) = self.sum([torch.tensor([float(mine)])])
        return bool(count > 0)

    def add_up(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of everybody's table."""
        (total,) = self.sum([torch.from_numpy(table)])
        return total.numpy()

    def share_array(
        self, array: NDArray[Any] | None, owner: int, kind: DTypeLike, dimensions: int
    ) -> NDArray[Any]:
        """The array of the worker that owns it, to everybody; others give None."""
        if self.count == 1:
            assert array is not None
            return array
        shape = torch.zeros(dimensions, dtype=torch.int64)
        if array is not None:
            shape = torch.tensor(array.shape)
        with _all_there():
            dist.broadcast(shape, owner)
            if array is None:
                array = np.empty(tuple(shape.tolist()), dtype=kind)
            array = np.ascontiguousarray(array, dtype=kind)
            if array.size:
                dist.broadcast(torch.from_numpy(array.reshape(-1).view(np.uint8)), owner)
        return array


@contextmanager
def _all_there() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise LostWorkerError("another worker of this training has gone") from error


def leads_torchrun() -> bool:
    """Whether this process leads the workers that `torchrun` started, or is alone."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def workers_of_torchrun() -> Iterator[Workers]:
    """Join the workers that `torchrun` started, if it did; a single one otherwise.

    Sums of tensors in a GPU's memory go by nccl, all others by gloo.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Workers()
        return
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    except (RuntimeError, ValueError) as error:
        raise SettingsError(f"the workers of torchrun do not find each other: {error}") from error
    try:
        yield Workers.current()
    finally:
        dist.destroy_process_group()
