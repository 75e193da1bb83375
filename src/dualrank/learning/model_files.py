"""A model directory as it lies on disk: which files it has, and whether they are what was written.

The manifest vouches for the other files by their sha256, and for itself by a digest. Both find
damage; neither is a secret, so that what a manifest says is checked as if a stranger had written
it: it names no file but those of a model, in its own folder, and its numbers are finite.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from dualrank.errors import CheckpointError
from dualrank.sentences import shortened
from dualrank.storage import read_file, read_json

FORMAT = 2
"""1: networks only, which had no `kind` (the Ranking SVM was one of them). It is still read."""
RANKER, PROPENSITY, MANIFEST = "ranker.safetensors", "propensity.json", "manifest.json"
OPTIMIZERS, MEMORY = "optimizers.safetensors", "memory.safetensors"
MOST_BYTES = {RANKER: 1 << 32, PROPENSITY: 1 << 26, OPTIMIZERS: 1 << 32, MEMORY: 1 << 34}
"""How large a file of each name may be."""

_PARTS = {
    "ranker": dict,
    "scaler": dict,
    "feature_names": list | None,
    "training": dict,
    "sha256": dict,
}


def digest_of(manifest: dict[str, Any]) -> str:
    """The sha256 of everything else in a manifest, however it is laid out."""
    rest = {name: value for name, value in manifest.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_model_files(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest, and the bytes of the files that it vouches for."""
    manifest = _read_manifest(folder)
    contents = {}
    for name, expected in manifest["sha256"].items():
        try:
            contents[name] = read_file(folder / name, MOST_BYTES[name], within=folder)
        except OSError as error:
            raise CheckpointError(f"{folder / name}: {error.strerror}") from error
        if hashlib.sha256(contents[name]).hexdigest() != expected:
            raise CheckpointError(f"{folder / name}: damaged: its sha256 is not the manifest's")
    return manifest, contents


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if folder.exists() and not folder.is_dir():
        raise CheckpointError(
            f"{folder}: a file, where a directory that dualrank has written was expected; models "
            "of other libraries are not read"
        )
    if not path.exists():
        raise CheckpointError(f"{folder}: not a model directory: no {MANIFEST} in it")
    # What trainings recorded may be nan: the error of a comparison on one query, for instance.
    manifest = read_json(path, CheckpointError, within=folder, constants=True)
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found not in range(1, FORMAT + 1):
        raise CheckpointError(
            f"{path}: model format {shortened(found)}, this version reads up to {FORMAT}"
        )
    for name, kind in _PARTS.items():
        if name not in manifest:
            raise CheckpointError(f"{path}: damaged: {name!r} is missing")
        if not isinstance(manifest[name], kind):
            raise CheckpointError(f"{path}: damaged: {name!r} is {manifest[name]!r:.60}")
    if manifest.get("digest") != digest_of(manifest):
        raise CheckpointError(f"{path}: damaged: its digest is not that of what it says")
    named = manifest["sha256"]
    for name in named:
        if name not in MOST_BYTES:
            raise CheckpointError(
                f"{path}: damaged: it names {name!r:.60}, which is no file of a model; "
                f"those are {', '.join(MOST_BYTES)}"
            )
    if RANKER not in named:
        raise CheckpointError(f"{path}: damaged: it does not name {RANKER}")
    return manifest
