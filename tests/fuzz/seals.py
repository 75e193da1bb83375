"""Digests mended or removed after a mutation, as one would who changes a file on purpose.

What is no such file any more raises some error, and is left as it is.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from safetensors.torch import load, save

from dualrank.learning import checkpoint as checkpoints
from dualrank.storage import sha256_of_file

_KEYS = (b"dualrank", b"dualrank.log")
"""Of the notes that Parquet files of dualrank's own carry."""


def manifest(path: Path) -> None:
    """A manifest vouches for the files as they are now, and for itself."""
    held = json.loads(path.read_bytes())
    folder = path.parent / held.get("directory", "")
    if isinstance(held.get("sha256"), dict):
        held["sha256"] = {name: sha256_of_file(folder / name) for name in held["sha256"]}
    for name, state in held.get("files", {}).items():
        about = (folder / name).stat()
        state[:2] = about.st_size, about.st_mtime_ns
        if isinstance(state[-1], str):
            state[-1] = sha256_of_file(folder / name)
    if "digest" in held:
        rest = {name: value for name, value in held.items() if name != "digest"}
        held["digest"] = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(held))


def shards(folder: Path) -> None:
    """The manifest of a log in shards vouches for every file as it is now."""
    path = folder / "shards.json"
    held = json.loads(path.read_bytes())
    for number, shard in enumerate(held["shards"]):
        for name in shard["files"]:
            file = folder / f"{number:05d}" / name
            state = {"bytes": file.stat().st_size, "sha256": sha256_of_file(file)}
            shard["files"][name] = state
    rest = {name: value for name, value in held.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True)
    held["digest"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(held))


def cache(folder: Path) -> None:
    """The one manifest in the cache of a LETOR file."""
    (path,) = folder.glob("*.dualrank-cache/*.json")
    manifest(path)


def checkpoint(folder: Path) -> None:
    """The header has the digest of the tensors and values that are there now."""
    path = folder / "checkpoint.safetensors"
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])["__metadata__"]
    tensors = load(data)
    header["digest"] = checkpoints._digest(tensors, header["values"])
    path.write_bytes(save(tensors, header))


def without_digest(path: Path) -> None:
    """As an earlier version wrote it, which knew no digest."""
    if path.suffix == ".json":
        held = json.loads(path.read_bytes())
        path.write_text(json.dumps({k: v for k, v in held.items() if k != "digest"}))
        return
    table = pq.read_table(path)
    notes = dict(table.schema.metadata)
    for key in notes.keys() & _KEYS:
        held = json.loads(notes[key])
        notes[key] = json.dumps({k: v for k, v in held.items() if k != "digest"}).encode()
    pq.write_table(table.replace_schema_metadata(notes), path)


def without_digests(folder: Path) -> None:
    """All Parquet files of a folder without theirs."""
    for path in folder.glob("*.parquet"):
        without_digest(path)


def has_digest(path: Path) -> bool:
    """Whether a click model or reduced log is of a version that knew digests."""
    try:
        if path.suffix == ".json":
            return "digest" in json.loads(path.read_bytes())
        notes: dict[bytes, Any] = pq.read_schema(path).metadata or {}
        return any("digest" in json.loads(notes[key]) for key in notes.keys() & _KEYS)
    except Exception:  # whatever it is, it is no file that anything vouches for
        return False
