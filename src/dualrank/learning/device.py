"""Where tensors live and steps are computed: the processor, or a GPU."""

from __future__ import annotations

import os
import re

import torch

from dualrank.errors import SettingsError


def choose_device(name: str) -> torch.device:
    """The device that is meant by `auto`, `cpu`, `cuda` or `cuda:n`.

    `auto` is a GPU where there is one. Without a number, each worker that `torchrun` started on a
    machine takes a GPU of its own.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name):
        raise SettingsError(f"device is auto, cpu, cuda or cuda:n, not {name!r}")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and count == 0):
        return torch.device("cpu")
    if count == 0:
        raise SettingsError(
            f"device is {name}, but no CUDA GPU was found (PyTorch {torch.__version__}); "
            "auto or cpu train without one"
        )
    index = int(name[5:]) if ":" in name else int(os.environ.get("LOCAL_RANK", "0"))
    if index >= count:
        raise SettingsError(
            f"GPU {index} was asked for, but this machine has {count}; they are numbered from 0"
        )
    return torch.device("cuda", index)
