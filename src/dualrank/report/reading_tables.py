"""What reading a log left out, and who clicked most, as tables."""

from __future__ import annotations

from dualrank.data.log.reading_report import ReadingReport
from dualrank.report.table import Row, Table


def left_out_table(reading: ReadingReport) -> Table | None:
    """What was wrong with the log, and what became of it; None where nothing was."""
    rows = tuple(Row(says, tuple(others)) for says, *others in reading.table())
    columns = ("How often", "What became of it", "Example")
    return Table(columns, rows, corner="Found", words=("Found", *columns[1:])) if rows else None


def clients_table(reading: ReadingReport) -> Table | None:
    """The clients that clicked most; None where the log names none, or nobody clicked."""
    rows = []
    for client in reading.clients if reading.clicks else ():
        cells = (
            f"{client.sessions:,}",
            f"{client.share_of_sessions:.2%}",
            f"{client.clicks:,}",
            f"{client.share_of_clicks:.2%}",
            "left out" if client.left_out else "kept",
        )
        rows.append(Row(client.name, cells))
    corner = "Clients that clicked most"
    columns = ("Sessions", "Of sessions", "Clicks", "Of clicks", "Was")
    return Table(columns, tuple(rows), corner=corner, words=(corner, "Was")) if rows else None
