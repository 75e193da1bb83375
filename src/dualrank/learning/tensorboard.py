"""What a training run looks like while it runs, as event files that TensorBoard draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dualrank.extras import require
from dualrank.learning.loop import Record


def require_tensorboard() -> None:
    """Say how to get TensorBoard where it is not installed."""
    require("tensorboard", "tensorboard")


@contextmanager
def event_files(folder: Path | None) -> Iterator[Record | None]:
    """A record that goes into a folder of event files, or none without a folder."""
    if folder is None:
        yield None
        return
    require_tensorboard()
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:

        def record(step: int, values: Mapping[str, float]) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, step)

        yield record
