"""Columns that only number the rows of a table, and are no features.

pandas writes the index of a frame beside its columns wherever it is not 0, 1, 2 …, which after
`drop_duplicates` or a filter it never is. Such an index is the row number, often in the order of
display: a ranker that learns from it learns the position, and finds another number when it serves.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

logger = logging.getLogger(__name__)

_UNNAMED = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name in a file."""
_NUMBERING = re.compile(r"index|level_\d+|Unnamed: \d+|row_nr|row_index")
"""What an index is called that was made a column: by reset_index, by CSV, by polars."""


def written_as_index(schema: pa.Schema) -> set[str]:
    """The columns that pandas wrote as the index of its frame."""
    unnamed = {name for name in schema.names if _UNNAMED.fullmatch(name)}
    try:
        said = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        return unnamed | {name for name in said["index_columns"] if isinstance(name, str)}
    except (ValueError, LookupError, TypeError, RecursionError):
        return unnamed


def unread(schema: pa.Schema, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of the index that are not among those which are read."""
    index = written_as_index(schema)
    return tuple(name for name in schema.names if name in index and name not in columns)


def called_like_numbering(name: str) -> bool:
    """Whether a column is called like an index that was made a column."""
    return _NUMBERING.fullmatch(name) is not None


def numbering(table: pa.Table) -> tuple[str, ...]:
    """The columns called like an index, all of whose values are different whole numbers."""
    return tuple(
        name
        for name in table.column_names
        if called_like_numbering(name)
        and pa.types.is_integer(table[name].type)
        and len(table) > 1
        and pc.count_distinct(table[name], mode="all").as_py() == len(table)
    )


def numbering_in(file: pq.ParquetFile, columns: Sequence[str]) -> tuple[str, ...]:
    """The same of these columns of a file, of which those are read that are called like one."""
    may_be = [name for name in columns if called_like_numbering(name)]
    return numbering(file.read(may_be)) if may_be else ()


def say_left_out(where: str, columns: Sequence[str]) -> None:
    """A warning that names the columns which were taken for an index."""
    listed = ", ".join(repr(name) for name in columns)
    one = len(columns) == 1
    logger.warning(
        "%s: %s %s left out: %s of rows is no feature, and pandas writes none with index=False",
        where,
        f"column {listed}" if one else f"columns {listed}",
        "is" if one else "are",
        "an index" if one else "the index",
    )
