"""Click models on disk: Parquet with the pairs as rows, or JSON with the same content.

A digest over all of it finds damage; files of earlier versions have none. What it cannot find, a
file that somebody made, is held to what a fitted model can be: probabilities, each within its
interval, of pairs that stand there once.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dualrank.clicks.models.counting import Floats
from dualrank.clicks.models.em import Climb
from dualrank.clicks.models.fitted import Fitted, FittedParts
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.catalogue import Catalogue
from dualrank.data.log.scratch import ScratchFolder
from dualrank.data.table_files import refuse_swollen
from dualrank.errors import DataError, DualrankError
from dualrank.sentences import reason_of, shortened, start_of
from dualrank.storage import MARK, atomic_file, parse_json, read_json, require_suffix, write_text

_KEY = b"dualrank"
_VERSION = 1
_MOST_JSON = 1 << 30
_MOST_DOCUMENTS = 1 << 27
"""The largest index of a document without a name: as many numbers are held."""
_ROUNDING = 1e-6
_ROWS_AT_ONCE = 1 << 16
_DAMAGE = (
    *(pa.ArrowException, ArithmeticError, AttributeError),
    *(LookupError, MemoryError, TypeError, ValueError),
)
"""What a file ends in that nobody wrote so."""


def write_fitted(model: str, fitted: Fitted | FittedParts, path: Path) -> None:
    """Write a fitted model under its name; only pairs that were seen.

    Pairs of a log in shards go through a temporary file, one shard after the other: the head of the
    file has a digest over all of them.
    """
    require_suffix(path, "a click model", ".parquet", ".json")
    if isinstance(fitted, Fitted):
        unseen = {name: parameter.unseen for name, parameter in fitted.pairs.items()}
        sessions, depth = fitted.sessions, fitted.depth
    else:
        unseen, sessions, depth = fitted.unseen, fitted.log.sessions, fitted.log.depth
    head: dict[str, Any] = {
        "version": _VERSION,
        "model": model,
        "sessions": sessions,
        "depth": depth,
        "shared": {name: values.tolist() for name, values in fitted.shared.items()},
        "unseen": unseen,
        "iterations": fitted.climb.iterations,
        "converged": fitted.climb.converged,
    }
    if isinstance(fitted, Fitted):
        _write(path, head, _pairs(fitted))
        return
    with ScratchFolder() as scratch:
        kept, writer = scratch.path / "pairs.arrow", None
        for part in fitted:
            table = _pairs(part)
            if writer is None:
                writer = pa.ipc.new_file(str(kept), table.schema)
            writer.write_table(table, max_chunksize=_ROWS_AT_ONCE)
        assert writer is not None
        writer.close()
        # Mapped: of the table nothing is in memory but what is being written.
        with pa.memory_map(str(kept)) as file, pa.ipc.open_file(file) as reader:
            _write(path, head, reader.read_all())


def _pairs(fitted: Fitted) -> pa.Table:
    """The pairs that were seen, with their parameters."""
    seen = np.flatnonzero(fitted.observations > 0)
    columns = {**fitted.names(seen), "observations": fitted.observations[seen]}
    for name, parameter in fitted.pairs.items():
        columns[name] = parameter.values[seen]
        columns[f"{name}_low"] = parameter.low[seen]
        columns[f"{name}_high"] = parameter.high[seen]
    return _typed(pa.table(columns))


def _write(path: Path, head: dict[str, Any], table: pa.Table) -> None:
    head["digest"] = _digest(head, table)
    if path.suffix == ".json":
        write_text(path, json.dumps({**head, "pairs": table.to_pydict()}, indent=1) + "\n")
    else:
        with atomic_file(path) as file:
            told = {_KEY: json.dumps(head).encode(), MARK: b"a click model"}
            named = table.replace_schema_metadata(told)
            pq.write_table(named, file, compression="zstd")


def read_fitted(path: Path) -> tuple[str, Fitted]:
    """Read what `write_fitted` wrote."""
    try:
        if path.suffix == ".json":
            head = dict(read_json(path, most=_MOST_JSON))
            table = _typed(pa.table(head.pop("pairs")))
        else:
            with path.open("rb") as file:  # One file: no folder, and no columns from its name.
                parquet = pq.ParquetFile(file)
                refuse_swollen(path, parquet.metadata)
                table = _typed(parquet.read())
            head = dict(parse_json((table.schema.metadata or {})[_KEY]))
        if head["version"] != _VERSION:
            raise DataError(
                f"a click model of version {shortened(head['version'])}; known is {_VERSION}"
            )
        if head.get("digest", digest := _digest(head, table)) != digest:
            raise DataError("damaged: its digest is not that of what it says")
        _check_table(table)
        return str(head["model"]), _fitted(head, table)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or reason_of(error)}") from error
    except DualrankError as error:
        named = str(error).startswith(str(path))
        raise DataError(str(error) if named else f"{path}: {error}") from error
    except _DAMAGE as error:
        raise DataError(f"{path}: not a click model ({error!r:.200})") from error


def holds_click_model(path: Path) -> bool:
    """Whether a file is a click model, and not, for instance, a log."""
    try:
        if path.suffix == ".json":
            content = read_json(path, most=_MOST_JSON)
            return isinstance(content, dict) and "pairs" in content
        return path.suffix == ".parquet" and _KEY in (pq.read_schema(path).metadata or {})
    except (DataError, OSError, ValueError, pa.ArrowException):
        return False


def _fitted(head: dict[str, Any], table: pa.Table) -> Fitted:
    """The parameters, over an index of its own: the rows of the table."""

    def column(name: str) -> Any:
        return table[name].to_numpy()

    catalogue, places = None, np.arange(table.num_rows)
    if "query_id" in table.column_names:
        query_ids, query = np.unique(column("query_id").astype(str), return_inverse=True)
        catalogue = Catalogue(query_ids, column("doc_id").astype(str), query)
    else:
        places = column("document")
        if len(places) and not 0 <= places.min() <= places.max() < _MOST_DOCUMENTS:
            raise DataError(f"documents have numbers from 0 to {_MOST_DOCUMENTS - 1:,}")
    size = int(places.max(initial=-1)) + 1

    def spread(name: str, unknown: float) -> Any:
        values = np.full(size, unknown)
        values[places] = column(name)
        return values

    depth, sessions = _whole(head, "depth"), _whole(head, "sessions")
    pairs = {}
    for name, unseen in head["unseen"].items():
        values, low, high = (column(f"{name}{bound}") for bound in ("", "_low", "_high"))
        for bound in (values, low, high, np.array([unseen], np.float64)):
            require_probabilities(name, bound)
        if not ((low <= values + _ROUNDING) & (values <= high + _ROUNDING)).all():
            raise DataError(f"{name} of a pair lies outside of its interval")
        pairs[name] = PairParameter(
            spread(name, unseen), spread(f"{name}_low", 0.0), spread(f"{name}_high", 1.0), unseen
        )
    shared = {name: np.array(values, np.float64) for name, values in head["shared"].items()}
    for name, values in shared.items():
        if values.ndim == 0 or len(values) not in (1, depth):
            raise DataError(f"{name} has {values.size} values for {depth} ranks")
        if not np.isfinite(values).all():
            raise DataError(f"{name} holds a number that is not finite")
    return Fitted(
        pairs,
        shared,
        spread("observations", 0).astype(np.int64),
        sessions,
        depth,
        catalogue,
        Climb((), _whole(head, "iterations"), bool(head["converged"])),
    )


def require_probabilities(name: str, values: Floats) -> None:
    """Refuse numbers that are no probabilities."""
    inside = (values >= -_ROUNDING) & (values <= 1 + _ROUNDING)
    if not inside.all():
        wrong = float(values[~inside].ravel()[0])
        raise DataError(f"{name} is {wrong:g} somewhere; a probability lies between 0 and 1")


def _whole(head: dict[str, Any], name: str) -> int:
    value = head[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < (name == "depth"):
        raise DataError(f"{name} is {value!r:.40}, which is no number of them")
    return value


def _typed(table: pa.Table) -> pa.Table:
    """The columns as they were written: names are text, counts are whole, the rest are numbers."""
    kinds = {"query_id": pa.string(), "doc_id": pa.string()}
    kinds |= {"document": pa.int64(), "observations": pa.int64()}
    fields = [pa.field(name, kinds.get(name, pa.float64())) for name in table.column_names]
    return table.cast(pa.schema(fields, metadata=table.schema.metadata))


def _check_table(table: pa.Table) -> None:
    """Refuse gaps, pairs that stand there twice, and counts below 0."""
    for name in table.column_names:
        if table[name].null_count:
            raise DataError(f"{start_of(name)} is missing in {table[name].null_count} of its rows")
    keys = [name for name in ("query_id", "doc_id", "document") if name in table.column_names]
    if keys not in (["query_id", "doc_id"], ["document"]):
        raise DataError("a pair has a query_id and a doc_id, or else the number of a document")
    if len(table.select(keys).group_by(keys).aggregate([])) < len(table):
        raise DataError("a pair of query and document stands there twice")
    if len(table) and (least := pc.min(table["observations"]).as_py()) < 0:
        raise DataError(f"a pair was observed {least} times")


def _digest(head: dict[str, Any], table: pa.Table) -> str:
    """The sha256 of everything else, however it is laid out."""
    rest = {name: value for name, value in head.items() if name != "digest"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(table.column_names):
        digest.update(name.encode())
        column = table[name]
        as_text = column.null_count or pa.types.is_string(column.type)
        texts = 0
        for chunk in column.chunks:
            if not as_text:
                digest.update(np.ascontiguousarray(chunk.to_numpy(zero_copy_only=False)).data)
            elif len(chunk):
                # Piece by piece, as all of them would stand in one JSON list.
                digest.update(b", " if texts else b"[")
                digest.update(json.dumps(chunk.to_pylist())[1:-1].encode())
                texts += len(chunk)
        if as_text:
            digest.update(b"]" if texts else b"[]")
    return digest.hexdigest()
