"""Files under the names that pages use for a reader's own, made of generated data, small."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

UBI_QUERIES = """cat > ubi_queries.jsonl <<'END'
{"query_id": "1", "user_query": "shoes", "query_response_hit_ids": ["a", "b"], "timestamp": "2026-11-02T10:00:00Z"}
{"query_id": "2", "user_query": "shoes", "query_response_hit_ids": ["b", "a"], "timestamp": "2026-11-02T11:00:00Z"}
END"""
UBI_EVENTS = """cat > ubi_events.jsonl <<'END'
{"query_id": "1", "action_name": "click", "event_attributes": {"object": {"object_id": "b"}, "position": {"ordinal": 2}}}
{"query_id": "1", "action_name": "add_to_cart", "event_attributes": {"object": {"object_id": "b"}, "position": {"ordinal": 2}}}
END"""
RECIPES = {
    "data/": "dualrank generate data/",
    "shown.parquet": """
        dualrank simulate data/train.txt --out plain.parquet --sessions 20000 --rankings 3
        python - <<'END'
import duckdb
duckdb.sql('''
    COPY (SELECT session_id, query_id, doc_id, position, clicked,
                 TIMESTAMP '2026-11-01' + INTERVAL (session_id % 200_000) SECOND AS timestamp,
                 CASE WHEN hash(session_id) % 3 = 0 THEN 'phone' ELSE 'desktop' END AS device,
                 'v' || hash(session_id) % 500 AS client_id,
                 (clicked AND hash(session_id, position) % 9 = 0)::INT AS cart,
                 (clicked AND hash(session_id, position) % 20 = 0)::INT AS purchase,
                 CASE WHEN clicked THEN hash(session_id, position) % 90 ELSE 0 END AS dwell_time
          FROM 'plain.parquet') TO 'shown.parquet';
''')
END""",
    "clicks.parquet": "cp shown.parquet clicks.parquet",
    "features.parquet": """python - <<'END'
import pyarrow as pa, pyarrow.parquet as pq
import dualrank as dr
for name, part in (("features", "train"), ("judged", "test")):
    data = dr.read_letor(f"data/{part}.txt")
    columns = {"query_id": data.query_ids[data.query_of_document], "doc_id": data.ids_of_documents()}
    if name == "judged":
        columns["grade"] = data.grades
    columns |= {f"f{i}": data.features[:, i] for i in range(data.feature_count)}
    pq.write_table(pa.table(columns), f"{name}.parquet")
END""",
    "judged.parquet": "",
    "train.parquet": "cp features.parquet train.parquet",
    "train.txt": "cp data/train.txt train.txt",
    "features/": "mkdir features && cp features.parquet features/part-1.parquet",
    "log.parquet": """dualrank reduce shown.parquet --context device --event cart --event purchase \
        --event dwell_time --out log.parquet""",
    "clicks/": """mkdir clicks && python - <<'END'
import duckdb
for day in (2, 3):
    where = f"timestamp >= '2026-11-0{day}' AND timestamp < '2026-11-0{day + 1}'"
    duckdb.sql(f"COPY (SELECT * FROM 'shown.parquet' WHERE {where}) TO 'clicks/2026-11-0{day}.parquet'")
END""",
    "day-1.parquet": "cp clicks/2026-11-02.parquet day-1.parquet",
    "day-2.parquet": "cp clicks/2026-11-03.parquet day-2.parquet",
    "today.parquet": "cp clicks/2026-11-03.parquet today.parquet",
    "events/": """mkdir -p events/clicks events/_features
        cp shown.parquet events/clicks/000001.parquet
        cp features.parquet events/_features/000001.parquet""",
    "clicks.txt": r"printf 's1\tq\td1\t1\t1\ns1\tq\td2\t2\t0\n' > clicks.txt",
    "export.txt": r"""printf 'ubi_queries\t{"query_id": "1"}\n' > export.txt""",
    "ubi_queries.jsonl": UBI_QUERIES,
    "ubi_events.jsonl": UBI_EVENTS,
    "ubi.ndjson": "cat ubi_queries.jsonl ubi_events.jsonl > ubi.ndjson",
    "model/": """dualrank train clicks.parquet --features features.parquet --method dla \
        --remember --out model/""",
    "naive/": """dualrank train clicks.parquet --features features.parquet --method naive \
        --no-twin --no-diagnosis --out naive/""",
    "two/": """python - <<'END'
import pyarrow.parquet as pq
two = pq.read_table("features.parquet", columns=["query_id", "doc_id", "f0", "f1"])
pq.write_table(two, "two.parquet")
END
        dualrank train clicks.parquet --features two.parquet --method dla --out two/""",
    "old.run": "dualrank rank naive/ features.parquet --out old.run",
    "new.run": "dualrank rank model/ features.parquet --out new.run",
}
"""How each is made, in this order, by commands of its own."""
MAKES = re.compile(r"(--(out|append|to|figure|events)|generate|generate-web|mkdir( -p)?|cp \S+) +$")


def needed(code: str) -> list[str]:
    """The names that some commands use before they make them, if they make them at all."""
    found = []
    for name in RECIPES:
        used = re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w])", code)
        if used and not MAKES.search(code[: used.start()]):
            found.append(name)
    return found


INSTEAD = {"service.md": {"model/": "two/"}}
"""What a page gets under another's name: requests of the service's page have two features."""


def take(pantry: Path, names: list[str], folder: Path, page: str) -> None:
    """Copy these into a folder."""
    for name in names:
        made = pantry / INSTEAD.get(page, {}).get(name, name)
        if made.is_dir():
            shutil.copytree(made, folder / name)
        else:
            shutil.copy(made, folder / name)
