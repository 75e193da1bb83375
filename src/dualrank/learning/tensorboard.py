"""What a training run looks like while it runs, as event files that TensorBoard draws."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dualrank.extras import require
from dualrank.learning.loop import Loop, Watch

EVERY = 20


def require_tensorboard() -> None:
    """Say how to get TensorBoard where it is not installed."""
    require("tensorboard", "tensorboard")


@contextmanager
def event_files(folder: Path | None, *, by_method: bool = False) -> Iterator[Watch | None]:
    """A watch that writes some steps into a folder of event files, or none without a folder.

    Where several methods are watched, `by_method` tells them apart.
    """
    if folder is None:
        yield None
        return
    require_tensorboard()
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:

        def watch(step: int, loop: Loop) -> None:
            if step % EVERY and step < loop.steps:
                return
            prefix = f"{loop.name}/" if by_method else ""
            for name, value in loop.recorded(step).items():
                writer.add_scalar(prefix + name, value, step)

        yield watch
