# Files under the names that pages use for a reader's own, made of generated data, small.
set -euo pipefail
dualrank generate data/
cp data/train.txt train.txt
mkdir features
dualrank simulate data/train.txt --out plain.parquet --rankings 3
python - <<'END'
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import dualrank as dr

duckdb.sql("""
    COPY (SELECT session_id, query_id, doc_id, position, clicked,
                 TIMESTAMP '2026-11-01' + INTERVAL (session_id * 60) SECOND AS timestamp,
                 CASE WHEN hash(session_id) % 3 = 0 THEN 'phone' ELSE 'desktop' END AS device,
                 'v' || hash(session_id) % 500 AS client_id,
                 (clicked AND hash(session_id, position) % 9 = 0)::INT AS cart,
                 (clicked AND hash(session_id, position) % 20 = 0)::INT AS purchase,
                 CASE WHEN clicked THEN hash(session_id, position) % 90 ELSE 0 END AS dwell_time
          FROM 'plain.parquet') TO 'clicks.parquet';
""")
for name, part in (("features", "train"), ("judged", "test")):
    data = dr.read_letor(f"data/{part}.txt")
    columns = {"query_id": data.query_ids[data.query_of_document], "doc_id": data.ids_of_documents()}
    if name == "judged":
        columns["grade"] = data.grades
    columns |= {f"f{i}": data.features[:, i] for i in range(data.feature_count)}
    pq.write_table(pa.table(columns), f"{name}.parquet")
    columns.pop("grade", None)
    pq.write_table(pa.table(columns), f"features/{part}.parquet")
    if name == "features":
        two = dict(list(columns.items())[:4])
        pq.write_table(pa.table(two), "two-features.parquet")
END
cp features.parquet train.parquet
dualrank reduce clicks.parquet --context device --event cart --event purchase --event dwell_time --out log.parquet

# Days, and the folder of a service.
mkdir -p clicks events/clicks events/_features
python - <<'END'
import duckdb

for day in (2, 3):
    where = f"timestamp >= '2026-11-0{day}' AND timestamp < '2026-11-0{day + 1}'"
    file = f"clicks/2026-11-0{day}.parquet"
    duckdb.sql(f"COPY (SELECT * FROM 'clicks.parquet' WHERE {where}) TO '{file}'")
END
cp clicks/2026-11-02.parquet day-1.parquet
cp clicks/2026-11-03.parquet day-2.parquet
cp clicks/2026-11-03.parquet today.parquet
cp clicks.parquet events/clicks/000001.parquet
cp features.parquet events/_features/000001.parquet

# Logs of other forms.
printf 's1\tq\td1\t1\t1\ns1\tq\td2\t2\t0\n' > clicks.txt
cat > ubi_queries.jsonl <<'END'
{"query_id": "1", "user_query": "shoes", "query_response_hit_ids": ["a", "b"], "timestamp": "2026-11-02T10:00:00Z"}
{"query_id": "2", "user_query": "shoes", "query_response_hit_ids": ["b", "a"], "timestamp": "2026-11-02T11:00:00Z"}
END
cat > ubi_events.jsonl <<'END'
{"query_id": "1", "action_name": "click", "event_attributes": {"object": {"object_id": "b"}, "position": {"ordinal": 2}}}
{"query_id": "1", "action_name": "add_to_cart", "event_attributes": {"object": {"object_id": "b"}, "position": {"ordinal": 2}}}
END
sed 's/^/ubi_queries\t/' ubi_queries.jsonl > export.txt
cat ubi_queries.jsonl ubi_events.jsonl > ubi.ndjson

# Models, and what becomes of them.
quickly="--method dla --no-twin --no-diagnosis"
dualrank train clicks.parquet --features features.parquet $quickly --remember --out model/
dualrank train clicks.parquet --features two-features.parquet $quickly --out two/
dualrank rank two/ two-features.parquet --out old.run
dualrank rank model/ features.parquet --out new.run
dualrank interleave build old.run new.run --out lists.parquet
python - <<'END'
import duckdb

duckdb.sql("""
    COPY (SELECT query_id || '-' || interleaving AS session_id, query_id, doc_id, position,
                 interleaving, (hash(query_id, interleaving, position) % 4 = 0)::INT AS clicked
          FROM 'lists.parquet') TO 'served.parquet';
""")
END
