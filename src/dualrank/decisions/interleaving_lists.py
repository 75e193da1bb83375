"""Interleavings of many queries, made before they are shown: a table that a service looks up.

A row is a document of a list: `query_id`, `interleaving` (the number of the list, from 1, within
its query), `position`, `doc_id`, `arm` (whom a click counts for; none where it counts for nobody),
`credit` (how much) and `probability` (how often this list is to be shown among those of its query).
A service draws one of a query's lists with these probabilities, for every session anew, and logs
its number.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dualrank.data.table_files import SUFFIXES as TABLE_SUFFIXES
from dualrank.data.table_files import read_table, refuse_swollen, suffix_of_table
from dualrank.data.trec import text_lines
from dualrank.decisions.interleaving import Interleaving, Rankings, team_drafts
from dualrank.decisions.optimised_interleaving import optimised
from dualrank.errors import DataError, SettingsError
from dualrank.sentences import absent, listed, reason_of, shortened
from dualrank.storage import parse_json, require_suffix, write_table

Way = Literal["team-draft", "optimised"]
WAYS: tuple[Way, ...] = get_args(Way)
KIND = "interleavings"
ABOUT = b"dualrank.interleaving"
"""Under this key the schema of the file says how its lists were made."""
SCHEMA = pa.schema(
    [
        ("query_id", pa.string()),
        ("interleaving", pa.int32()),
        ("position", pa.int32()),
        ("doc_id", pa.string()),
        ("arm", pa.string()),
        ("credit", pa.float64()),
        ("probability", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Making:
    """How lists were made: by which `way`, of which arms, with which seed.

    `digests` has the sha256 of every arm's run. `drafted` counts the queries for which optimised
    interleaving has no solution, and that have team drafts instead. `left_out` counts queries that
    not all arms rank.
    """

    way: Way
    arms: tuple[str, ...]
    depth: int
    seed: int
    queries: int
    lists: int
    drafted: int = 0
    left_out: int = 0
    digests: Mapping[str, str] | None = None


@dataclass(frozen=True, eq=False)
class InterleavedLists:
    """The lists of every query, and how they were made."""

    lists: Mapping[str, Sequence[Interleaving]]
    making: Making

    def table(self) -> pa.Table:
        """A row per document of a list."""
        columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
        for query, drawn in self.lists.items():
            for number, each in enumerate(drawn, 1):
                length = len(each.documents)
                columns["query_id"] += [query] * length
                columns["interleaving"] += [number] * length
                columns["position"] += range(1, length + 1)
                columns["doc_id"] += each.documents
                columns["arm"] += each.arms
                columns["credit"] += each.credits
                columns["probability"] += [each.probability] * length
        return pa.table(columns, schema=SCHEMA).replace_schema_metadata(
            {ABOUT: json.dumps(asdict(self.making)).encode()}
        )

    def write(self, path: Path) -> None:
        """Write the table as Parquet; what it was made of stands in its schema."""
        require_suffix(path, KIND, ".parquet")
        write_table(path, self.table(), KIND)


def build_lists(
    runs: Mapping[str, Mapping[str, Sequence[str]]],
    *,
    way: Way = "team-draft",
    depth: int = 10,
    per_query: int = 16,
    queries: Iterable[str] | None = None,
    seed: int = 0,
    digests: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> InterleavedLists:
    """Interleave the rankings of several arms (`runs[arm][query]`), for all queries or for these.

    Team drafts are drawn `per_query` times. Every query has random numbers of its own, so that its
    lists do not depend on which other queries there are.
    """
    if way not in WAYS:
        raise SettingsError(f"way is {' or '.join(WAYS)}, not {shortened(way)}")
    if per_query < 1:
        raise SettingsError(f"per_query is 1 or more, not {per_query}")
    if len(runs) < 2:
        raise SettingsError("interleaving takes the rankings of two arms or more; give another run")
    wanted = dict.fromkeys(queries) if queries is not None else None
    known = (
        list(wanted)
        if wanted is not None
        else list(dict.fromkeys(q for r in runs.values() for q in r))
    )
    ranked = [query for query in known if all(query in run for run in runs.values())]
    if not ranked:
        among = "none of these queries" if wanted is not None else "no query"
        raise DataError(
            f"{among} is ranked by every arm ({listed(runs)}); expected runs of the same queries"
        )
    found: dict[str, Sequence[Interleaving]] = {}
    drafted = 0
    for number, query in enumerate(ranked):
        rankings = {arm: run[query] for arm, run in runs.items()}
        rng = np.random.default_rng([seed, _number_of(query)])
        drawn = _optimised(rankings, depth) if way == "optimised" else None
        drafted += way == "optimised" and drawn is None
        found[query] = drawn or team_drafts(rankings, rng, depth, per_query)
        if progress is not None:
            progress(number + 1, len(ranked))
    lists = sum(len(each) for each in found.values())
    left_out = len(known) - len(ranked)
    making = Making(
        way, tuple(runs), depth, seed, len(ranked), lists, drafted, left_out, dict(digests or {})
    )
    return InterleavedLists(found, making)


def _number_of(query: str) -> int:
    digest = hashlib.blake2b(query.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest)


def _optimised(rankings: Rankings, depth: int) -> list[Interleaving] | None:
    """None where no choice of lists is neutral."""
    try:
        return optimised(rankings, depth)
    except DataError:
        return None


def arm_names(runs: Sequence[Path], named: Sequence[str] = ()) -> tuple[str, ...]:
    """The arms of these runs: as they are named, or as their files are.

    >>> arm_names([Path("runs/old.run"), Path("runs/new.run.gz")])
    ('old', 'new')
    """
    if len(runs) < 2:
        raise SettingsError("interleaving takes the rankings of two arms or more; give another run")
    stems = [path.name.partition(".")[0] or path.name for path in runs]
    names = tuple(named) or tuple(stems if len(set(stems)) == len(stems) else map(str, runs))
    if len(names) != len(runs):
        raise SettingsError(f"arms names {len(names)} for {len(runs)} runs: {listed(names)}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"two arms are called {shortened(twice)}; give arms= a name for each")
    return names


def read_queries(path: Path) -> list[str]:
    """The ids of queries: the column query_id of a table, or the lines of a text."""
    if suffix_of_table(path) in TABLE_SUFFIXES:
        found: list[str] = read_table(path, ("query_id",))["query_id"].to_pylist()
    else:
        try:
            found = [line.decode().strip() for _, line in text_lines(path)]
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not UTF-8 text; expected a query id in each line") from error
    found = [query for query in dict.fromkeys(found) if query]
    if not found:
        raise DataError(f"{path}: there is no query id in it")
    return found


def read_lists(path: Path) -> InterleavedLists:
    """Read what `InterleavedLists.write` wrote; what is wrong with it is said in one sentence."""
    if not path.is_file():
        raise DataError(absent(path))
    try:
        with pq.ParquetFile(path) as file:
            refuse_swollen(path, file.metadata)
            missing = [name for name in SCHEMA.names if name not in file.schema_arrow.names]
            if missing:
                raise DataError(
                    f"{path}: column {missing[0]!r} is missing; expected the lists that "
                    "`dualrank interleave build` wrote"
                )
            about = (file.schema_arrow.metadata or {}).get(ABOUT)
            table = file.read(columns=SCHEMA.names).cast(SCHEMA)
            table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise DataError(f"{path}: the lists cannot be read ({reason_of(error)})") from error
    lists = _lists(path, table)
    making = _making(path, about, lists)
    strangers = {a for each in lists.values() for one in each for a in one.arms} - {
        *making.arms,
        None,
    }
    if strangers:
        raise DataError(
            f"{path}: the arms {listed(sorted(map(str, strangers)))} are not those that the file "
            f"was made of ({listed(making.arms)})"
        )
    return InterleavedLists(lists, making)


def _lists(path: Path, table: pa.Table) -> dict[str, Sequence[Interleaving]]:
    required = [name for name in SCHEMA.names if name != "arm"]
    for name in required:
        if table[name].null_count:
            raise DataError(f"{path}: {name} is missing in a row; expected a value in each")
    numbers = [table[name].to_numpy() for name in ("credit", "probability")]
    if not all(np.isfinite(each).all() and (each >= 0).all() for each in numbers):
        raise DataError(f"{path}: credit and probability are finite and 0 or more in every row")
    rows = list(zip(*(table[name].to_pylist() for name in SCHEMA.names), strict=True))
    rows.sort(key=lambda row: row[:3])
    found: dict[str, list[Interleaving]] = {}
    for (query, number), group in _grouped(rows):
        drawn = found.setdefault(query, [])
        documents = tuple(row[3] for row in group)
        where = f"{path}: list {number} of query {shortened(query)}"
        if [row[2] for row in group] != list(range(1, len(group) + 1)):
            raise DataError(f"{where} has other positions than 1 to {len(group)}, each once")
        if len(set(documents)) < len(documents):
            raise DataError(f"{where} has a document twice; expected each once")
        if number != len(drawn) + 1:
            raise DataError(f"{where} follows list {len(drawn)}; expected them numbered from 1")
        drawn.append(
            Interleaving(
                documents,
                tuple(row[4] or None for row in group),
                tuple(row[5] for row in group),
                group[0][6],
            )
        )
    if not found:
        raise DataError(f"{path}: there are no lists in it")
    return dict(found)


def _grouped(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[tuple[str, int], list[Any]]]:
    for key, group in groupby(rows, key=lambda row: (row[0], row[1])):
        yield key, list(group)


def _making(path: Path, about: bytes | None, lists: Mapping[str, Sequence[Interleaving]]) -> Making:
    """What the file says of itself, of which only the arms matter."""
    try:
        said = parse_json(about or b"")
        arms = said["arms"]
        if not isinstance(arms, list) or not all(isinstance(arm, str) for arm in arms):
            raise ValueError("arms is no list of names")
        way = said["way"] if said["way"] in WAYS else WAYS[0]
        depth, seed, drafted, left_out = (
            int(said[name]) for name in ("depth", "seed", "drafted", "left_out")
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}: the file does not say how its lists were made; expected what "
            "`dualrank interleave build` wrote, as it wrote it"
        ) from error
    count = sum(len(each) for each in lists.values())
    return Making(way, tuple(arms), depth, seed, len(lists), count, drafted, left_out)
