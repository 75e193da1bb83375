"""Click models on disk: Parquet with the pairs as rows, or JSON with the same content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dualrank.clicks.models.em import Climb
from dualrank.clicks.models.fitted import Fitted
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.catalogue import Catalogue
from dualrank.errors import DataError, DualrankError
from dualrank.storage import MARK, atomic_file, require_suffix, write_text

_KEY = b"dualrank"
_VERSION = 1


def write_fitted(model: str, fitted: Fitted, path: Path) -> None:
    """Write a fitted model under its name; only pairs that were seen."""
    require_suffix(path, "a click model", ".parquet", ".json")
    seen = np.flatnonzero(fitted.observations > 0)
    columns = {**fitted.names(seen), "observations": fitted.observations[seen]}
    for name, parameter in fitted.pairs.items():
        columns[name] = parameter.values[seen]
        columns[f"{name}_low"] = parameter.low[seen]
        columns[f"{name}_high"] = parameter.high[seen]
    table = pa.table(columns)
    head = {
        "version": _VERSION,
        "model": model,
        "sessions": fitted.sessions,
        "depth": fitted.depth,
        "shared": {name: values.tolist() for name, values in fitted.shared.items()},
        "unseen": {name: parameter.unseen for name, parameter in fitted.pairs.items()},
        "iterations": fitted.climb.iterations,
        "converged": fitted.climb.converged,
    }
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
            head = json.loads(path.read_text(encoding="utf-8"))
            table = pa.table(head.pop("pairs"))
        else:
            table = pq.read_table(path)
            head = json.loads((table.schema.metadata or {})[_KEY])
        if head["version"] != _VERSION:
            raise DataError(f"a click model of version {head['version']}; known is {_VERSION}")
        return str(head["model"]), _fitted(head, table)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except DualrankError as error:
        raise DataError(f"{path}: {error}") from error
    except (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not a click model ({error!r})") from error


def holds_click_model(path: Path) -> bool:
    """Whether a file is a click model, and not, for instance, a log."""
    try:
        if path.suffix == ".json":
            content = json.loads(path.read_text(encoding="utf-8"))
            return isinstance(content, dict) and "pairs" in content
        return path.suffix == ".parquet" and _KEY in (pq.read_schema(path).metadata or {})
    except (OSError, ValueError, pa.ArrowException):
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
    size = int(places.max(initial=-1)) + 1

    def spread(name: str, unknown: float) -> Any:
        values = np.full(size, unknown)
        values[places] = column(name)
        return values

    return Fitted(
        {
            name: PairParameter(
                spread(name, unseen),
                spread(f"{name}_low", 0.0),
                spread(f"{name}_high", 1.0),
                unseen,
            )
            for name, unseen in head["unseen"].items()
        },
        {name: np.array(values) for name, values in head["shared"].items()},
        spread("observations", 0).astype(np.int64),
        int(head["sessions"]),
        int(head["depth"]),
        catalogue,
        Climb((), int(head["iterations"]), bool(head["converged"])),
    )
