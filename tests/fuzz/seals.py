"""Digests mended after a mutation, as one would who changes a file on purpose.

Each does it with dualrank's own functions, and leaves what is no such file any more as it is.
"""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import load, save

from dualrank.data.letor import cache as letor_cache
from dualrank.learning import checkpoint as checkpoints
from dualrank.learning import model as models
from dualrank.storage import sha256_of_file


def model(folder: Path) -> None:
    """The manifest vouches for the files as they are now, and for itself."""
    path = folder / "model" / models.MANIFEST
    manifest = json.loads(path.read_bytes())
    for name in manifest["sha256"]:
        manifest["sha256"][name] = sha256_of_file(path.parent / name)
    manifest["digest"] = models._digest(manifest)
    path.write_text(json.dumps(manifest))


def checkpoint(folder: Path) -> None:
    """The header has the digest of the tensors and values that are there now."""
    path = folder / "checkpoint.safetensors"
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])["__metadata__"]
    tensors = load(data)
    header["digest"] = checkpoints._digest(tensors, header["values"])
    path.write_bytes(save(tensors, header))


def cache(folder: Path) -> None:
    """The manifest has the sizes and times of the arrays as they are now."""
    (manifest,) = folder.glob("*.dualrank-cache/*.json")
    held = json.loads(manifest.read_bytes())
    directory = manifest.parent / held["directory"]
    held["files"] = letor_cache._files(directory)
    manifest.write_text(json.dumps(held))
