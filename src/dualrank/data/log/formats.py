"""The formats in which logs are read: one line each."""

from __future__ import annotations

from dualrank.data.log.duckdb_engine import DuckDBEngine
from dualrank.data.log.log_format import LogFormat, Source
from dualrank.data.log.text_formats import Csv, JsonLines


class Parquet(LogFormat):
    """Parquet files, whatever they are called."""

    title = "Parquet"
    suffixes = (".parquet", ".pq")
    begins = b"PAR1"

    def rows(self, engine: DuckDBEngine, source: Source) -> str:
        """The rows of all files, which may have other columns each."""
        return (
            f"SELECT * FROM read_parquet({engine.texts(source.files)}, union_by_name = true, "
            "hive_partitioning = false)"
        )


PARQUET = Parquet()
FORMATS: list[LogFormat] = [PARQUET, Csv(), JsonLines()]


def by_suffix() -> dict[str, LogFormat]:
    """The formats by what the names of their files end in."""
    return {suffix: format for format in FORMATS for suffix in format.suffixes}
