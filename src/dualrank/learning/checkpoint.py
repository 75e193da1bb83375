"""A training run on disk: everything that is needed to continue it as if nothing had happened.

One safetensors file holds the tensors and, in its header, the step, the random state and what the
run is. It appears whole or not at all, and a digest over all of it finds damage that the format
itself would let through.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from dualrank.errors import CheckpointError
from dualrank.sentences import LONGEST_LIST, reason_of, shortened, start_of
from dualrank.storage import atomic_file, parse_json

FORMAT = 2


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and plain values about them."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]

    def group(self, prefix: str) -> dict[str, Tensor]:
        """The tensors under a prefix, without it."""
        start = f"{prefix}."
        return {k.removeprefix(start): v for k, v in self.tensors.items() if k.startswith(start)}


def write_checkpoint(path: Path, checkpoint: Checkpoint, *, durable: bool = True) -> None:
    """Replace the checkpoint at `path`; on failure the previous one still stands."""
    tensors = {name: t.detach().cpu().contiguous() for name, t in checkpoint.tensors.items()}
    text = json.dumps(checkpoint.values, sort_keys=True)
    header = {"format": str(FORMAT), "values": text, "digest": _digest(tensors, text)}
    try:
        with atomic_file(path, durable=durable) as file:
            file.write(save(tensors, header))
    except OSError as error:
        raise CheckpointError(
            f"{path}: the checkpoint could not be written ({error.strerror}); "
            "the previous one is untouched"
        ) from error


def read_checkpoint(path: Path) -> Checkpoint:
    """Read and verify a checkpoint."""
    unread = "not a readable checkpoint"
    try:
        if not path.is_file():
            raise OSError("it is not a regular file")
        with safe_open(str(path), framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(
            f"{path}: {unread} ({reason_of(error)}); delete it to start anew"
        ) from error
    if header.get("format") != str(FORMAT):
        raise CheckpointError(
            f"{path}: checkpoint format {shortened(header.get('format'))}, this version reads "
            f"{FORMAT}"
        )
    if header.get("digest") != _digest(tensors, header.get("values", "")):
        raise CheckpointError(
            f"{path}: the checkpoint is damaged (its digest differs); delete it to start anew"
        )
    try:
        values = parse_json(header["values"], bits=128, constants=True)
        return Checkpoint(tensors, dict(values))
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: {unread} ({reason_of(error)}); delete it to start anew"
        ) from error


def require_same_run(path: Path, saved: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to continue a run with other data or settings, and say what differs."""
    saved, now = _flat(saved), _flat(json.loads(json.dumps(now)))  # tuples are saved as lists
    differing = [
        f"{key} was {shortened(saved.get(key))} and is {shortened(now.get(key))}"
        for key in sorted(saved.keys() | now.keys())
        if saved.get(key) != now.get(key)
    ]
    if differing:
        raise CheckpointError(
            f"{path}: belongs to another run: {start_of('; '.join(differing), LONGEST_LIST)}; "
            "delete it or choose another directory"
        )


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by their whole names, so that only those that differ are shown."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        inner = _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else None
        flat |= inner or {f"{prefix}{name}": value}
    return flat


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        # A single element may have any stride, as of a tree of one leaf; a view as bytes has not.
        row = tensor.as_strided((tensor.numel(),), (1,))
        digest.update(row.view(torch.uint8).numpy().data)
    return digest.hexdigest()
