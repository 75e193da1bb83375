"""One small whole file of every kind, written by dualrank itself where it writes such files."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import shutil
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dualrank as dr
from dualrank.data.click_log import PERIOD, Column
from dualrank.data.log.days import LogFolder
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.reading_report import ReadingReport
from dualrank.data.log.saved import write_log
from dualrank.data.runs import write_run
from dualrank.data.shards.splitting import write_shards
from dualrank.decisions.interleaving_lists import InterleavedLists, build_lists
from dualrank.online import (
    Alarm,
    Collector,
    Event,
    EventStore,
    Impression,
    LearnerRecord,
    Round,
    Segments,
    Version,
)
from dualrank.online.learner.learner_state import LearnerState
from dualrank.online.versions import Happening
from dualrank.pages.index import PageIndex
from dualrank.pages.sources import HeldPages
from dualrank.pages.tokens import Tokeniser
from dualrank.report.results import PropensityResult, Results, Run
from dualrank.reproduce.experiment import Task, Trained
from dualrank.reproduce.kept_runs import KeptRuns
from dualrank.reproduce.oracle_mode import OracleMode

FIRST_CUT = Path(__file__).parents[1] / "fixtures" / "first-cut"
CLICK_MODELS = ("pbm", "dbn", "ubm", "ccm", "pbm-trust")
RANKERS = ("dnn", "linear", "trees", "svm", "sum", "remembering")
CHECKPOINTS = ("dnn", "trees")
TASK = Task(OracleMode(preset="tiny", seeds=1), "dla", 0)
EXPORTS = {"opensearch": "featureset.json", "solr": "features.json", "vespa": "rank-profile.txt"}
_PAGE = (
    "<!DOCTYPE html><html><head><meta charset=utf-8><title>Page {n}</title></head><body><h1>Größe"
    " {n}</h1><p>Some <b>words</b> &amp; more 中文.</p><script>x = '<p>'</script></body></html>"
)


@cache
def documents() -> dr.Dataset:
    """Five queries of four documents, with three named features and grades."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 3)).round(2).astype(np.float32)
    return dr.Dataset.from_arrays(
        X,
        np.repeat([f"q{i}" for i in range(5)], 4),
        np.digitize(X[:, 0], [-0.5, 0.5]),
        doc_ids=[f"d{i}" for i in range(20)],
        feature_names=("bm25", "length", "age"),
        max_grade=2,
    )


@cache
def clicks() -> dr.ClickLog:
    """A hundred sessions on these documents, on two devices and in two parts of time."""
    data, rng = documents(), np.random.default_rng(2)
    log = dr.sample_log(
        data, dr.top_lists(data, data.features[:, 1], 4), dr.PositionBasedUser(), 100, rng
    )
    rows = len(log.counts)
    columns = {
        "device": Column(("phone", "desktop"), rng.integers(0, 2, rows).astype(np.int32)),
        PERIOD: Column(("1", "2"), rng.integers(0, 2, rows).astype(np.int32)),
    }
    bought = {"purchase": log.clicks * rng.integers(0, 2, log.clicks.shape).astype(float)}
    return replace(log, columns=columns, catalogue=data.catalogue, events=bought)


def trained(ranker: str, checkpoint: Path | None = None) -> dr.Model:
    """A model of this kind, trained for a moment; from a checkpoint where there is one."""
    kinds: dict[str, Any] = {
        "dnn": dr.DNN((3,)),
        "linear": dr.Linear(),
        "svm": dr.RankingSVM(),
        "trees": dr.Trees(leaves=3, feature_share=1.0, least_evidence=0.1, shrinkage=1.0),
    }
    if ranker == "sum":
        model = trained("dnn")
        return replace(model, ranker=model.ranker.plus(trained("dnn").ranker, 0.5))
    if ranker == "remembering":
        first = dr.fit(
            clicks(), documents(), ranker=dr.Linear(), steps=2, optimizer="adagrad", validation=0
        )
        known = first.remember(clicks(), documents())
        return known.update(clicks(), documents(), steps=2, changed=True, validation=0)
    return dr.fit(
        clicks(),
        documents(),
        method="naive" if ranker == "svm" else "dla",
        ranker=kinds[ranker],
        steps=4,
        validate_every=1,
        checkpoint_every=3,
        batch_size=16,
        checkpoint=checkpoint,
    )


@cache
def exported() -> dr.Model:
    """The model that goes to search engines."""
    return trained("trees")


def build(folder: Path) -> None:
    """All of them, a folder for each format."""
    for work in (
        _logs,
        _ubi,
        _interleaved,
        _tables,
        _letor,
        _models,
        _click_models,
        _pages,
        _experiments,
        _events,
        _learner,
    ):
        work(folder)


def _place(folder: Path, *parts: str) -> Path:
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _text(folder: Path, format: str, name: str, text: str | bytes) -> None:
    data = text.encode() if isinstance(text, str) else text
    if name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    elif name.endswith(".zst"):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(data)
        data = sink.getvalue().to_pybytes()
    _place(folder, format, name).write_bytes(data)


def _csv(table: pa.Table, delimiter: str = ",") -> str:
    rows = [table.column_names, *(row.values() for row in table.to_pylist())]
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, default=str) + "\n" for row in rows)


def _logs(folder: Path) -> None:
    log = clicks()
    table = log.to_table()
    table = table.rename_columns([{PERIOD: "timestamp"}.get(c, c) for c in table.column_names])
    times = [f"2024-05-{10 + int(day.as_py())}T12:34:56" for day in table["timestamp"]]
    table = table.set_column(table.column_names.index("timestamp"), "timestamp", pa.array(times))
    few = table.slice(0, 120)
    pq.write_table(table, _place(folder, "log-parquet", "log.parquet"))
    _text(folder, "log-csv", "log.csv", _csv(few))
    _text(folder, "log-tsv", "log.tsv", _csv(few, "\t"))
    _text(folder, "log-csv-gz", "log.csv.gz", _csv(few))
    _text(folder, "log-jsonl", "log.jsonl", _lines(few.to_pylist()))
    _text(folder, "log-jsonl-zst", "log.jsonl.zst", _lines(few.to_pylist()))
    write_log(log, _place(folder, "reduced-log", "log.parquet"))
    kinds = LogOptions(contexts=("device",), event_kinds=("purchase",))
    days = LogFolder(_place(folder, "days-of-log", "any").parent)
    for name, part in log.split(PERIOD).items():
        columns = {"device": part.columns["device"]}
        rows, sessions = int(part.lists.mask[part.list_of].sum()), part.sessions
        reading = ReadingReport(name, rows, sessions, sessions, int(part.clicks.sum()))
        days.add(name, replace(part, columns=columns, reading=reading), kinds, ())
    rows, sessions = int(log.lists.mask[log.list_of].sum()), log.sessions
    whole = replace(log, reading=ReadingReport("log", rows, sessions, sessions, 0))
    write_shards(whole, _place(folder, "log-in-shards", "log"), 2, documents())
    shutil.copy(
        FIRST_CUT / "reduced-log.parquet", _place(folder, "reduced-log-first-cut", "log.parquet")
    )


def _ubi(folder: Path) -> None:
    queries: list[dict[str, Any]] = [
        {
            "query_id": f"u{i}",
            "user_query": ("toner", "ram")[i % 2],
            "query_response_hit_ids": ["a", "b", "c", "007"][: 2 + i % 3],
            "client_id": f"c{i % 3}",
            "timestamp": f"2024-05-16T12:34:{10 + i}.789Z",
            "application": "shop",
            "query_attributes": {"experiment": "A"},
        }
        for i in range(8)
    ]
    events = [
        {
            "action_name": ("click", "click", "impression", "add_to_cart")[i % 4],
            "query_id": f"u{i % 8}",
            "application": "shop",
            "client_id": f"c{i % 3}",
            "timestamp": "2024-05-16T12:35:00Z",
            "event_attributes": {
                "object": {"object_id": "ab"[i % 2], "object_id_field": "sku"},
                "position": {"ordinal": 1 + i % 2},
                "dwell_time": 3.5,
            },
        }
        for i in range(12)
    ]
    _text(folder, "ubi-jsonl", "queries.jsonl", _lines(queries))
    _text(folder, "ubi-jsonl", "events.jsonl", _lines(events))
    pq.write_table(pa.Table.from_pylist(queries), _place(folder, "ubi-parquet", "queries.parquet"))
    pq.write_table(pa.Table.from_pylist(events), _place(folder, "ubi-parquet", "events.parquet"))
    actions = [{"index": {"_index": "ubi", "_id": str(i)}} for i in range(20)]
    pairs = zip(actions, [*queries, *events], strict=False)
    records: list[dict[str, Any]] = [line for pair in pairs for line in pair]
    _text(folder, "ubi-bulk", "ubi.ndjson", _lines(records))


def interleavings() -> InterleavedLists:
    """Team drafts of two rankings of every query."""
    data = documents()
    rows = data.doc_ids.reshape(5, 4).tolist()
    names = data.query_ids.tolist()
    arms = {"old": dict(zip(names, rows, strict=True))}
    arms["new"] = {query: ranking[::-1] for query, ranking in arms["old"].items()}
    return build_lists(arms, depth=4, per_query=2)


def _interleaved(folder: Path) -> None:
    lists = interleavings()
    lists.write(_place(folder, "interleavings", "lists.parquet"))
    rows: list[dict[str, Any]] = []
    for session in range(40):
        query = f"q{session % 5}"
        each = lists.lists[query][session % 2]
        for place, (document, arm) in enumerate(zip(each.documents, each.arms, strict=True)):
            row = {"session_id": f"s{session}", "query_id": query, "doc_id": document}
            row |= {"position": place + 1, "clicked": (session + place) % 3 == 0, "arm": arm}
            rows.append(row | {"timestamp": 1.7e9 + 9_000 * session})
    log = pa.Table.from_pylist(rows)
    pq.write_table(log, _place(folder, "interleaved-log-parquet", "log.parquet"))
    _text(folder, "interleaved-log-csv", "log.csv", _csv(log))
    events = [
        {
            "action_name": "click" if row["clicked"] else "impression",
            "query_id": row["session_id"],
            "user_query": row["query_id"],
            "timestamp": "2026-05-16T12:35:00Z",
            "event_attributes": {
                "object": {"object_id": row["doc_id"], "search_config": row["arm"]},
                "position": {"ordinal": row["position"]},
                "ab_test_id": "one",
            },
        }
        for row in rows
    ]
    _text(folder, "interleaved-events", "events.ndjson", _lines(events))


def _tables(folder: Path) -> None:
    data = documents()
    keys = {
        "query_id": data.query_ids[data.query_of_document],
        "doc_id": data.doc_ids,
        "grade": data.grades,
    }
    columns = {name: data.features[:, i] for i, name in enumerate(data.feature_names or ())}
    in_columns = pa.table(keys | columns)
    for name in ("features-columns", "features-in-batches"):
        pq.write_table(in_columns, _place(folder, name, "features.parquet"))
    in_lists = pa.table(keys | {"features": data.features.tolist()})
    for name in ("features-lists", "lists-in-batches"):
        pq.write_table(in_lists, _place(folder, name, "features.parquet"))
    for name in ("run.parquet", "run.csv", "run.trec"):
        write_run(_place(folder, f"run-{name[4:]}", name), data, data.features[:, 0])
    qrels = "".join(
        f"{query} 0 {document} {grade:g}\n"
        for (query, document), grade in zip(data.pairs(), data.require_grades(), strict=True)
    )
    _text(folder, "qrels", "judged.qrels", qrels)
    pairs = pa.table(keys)
    queries = pa.table({"query_id": data.query_ids, "query": [f"words {i}" for i in range(5)]})
    for name, table in (("pairs", pairs), ("queries", queries)):
        pq.write_table(table, _place(folder, f"{name}-parquet", f"{name}.parquet"))
        _text(folder, f"{name}-csv", f"{name}.csv", _csv(table))
        _text(folder, f"{name}-tsv-gz", f"{name}.tsv.gz", _csv(table, "\t"))
        _text(folder, f"{name}-jsonl", f"{name}.jsonl", _lines(table.to_pylist()))
    _text(folder, "pairs-qrels", "pairs.qrels", qrels)


def _letor(folder: Path) -> None:
    for format, name in (
        ("letor", "data.txt"),
        ("letor-gz", "data.txt.gz"),
        ("letor-zst", "data.txt.zst"),
        ("letor-cache", "data.txt"),
    ):
        dr.write_letor(documents(), _place(folder, format, name))
    dr.read_letor(folder / "letor-cache" / "data.txt")


def _models(folder: Path) -> None:
    for kind in RANKERS:
        trained(kind).save(_place(folder, f"model-{kind}", "model"))
    shutil.copytree(FIRST_CUT / "models" / "dla", _place(folder, "model-first-cut", "model"))
    for kind in CHECKPOINTS:
        path = _place(folder, f"checkpoint-{kind}", "checkpoint.safetensors")
        trained(kind, path)
        assert path.exists()
    for name in ("propensity-click-through", "propensity-by-device"):
        shutil.copy(FIRST_CUT / f"{name}.json", _place(folder, name, f"{name}.json"))
    for target in EXPORTS:
        dr.export(exported(), target, _place(folder, f"export-{target}", "model.json"))


def _click_models(folder: Path) -> None:
    for name in CLICK_MODELS:
        fitted = dr.click_model(name).fit(clicks())
        for suffix in ("parquet", "json"):
            fitted.save(_place(folder, f"click-model-{name}-{suffix}", f"model.{suffix}"))
    first_cut = _place(folder, "click-model-first-cut", "model.parquet")
    shutil.copy(FIRST_CUT / "click-model-ubm.parquet", first_cut)
    user = {"model": "dbn", "epsilon": 0.1, "satisfaction": 0.8, "continuation": 0.9}
    _text(folder, "user-dbn", "user.json", json.dumps(user))
    rows = [[0.9], [0.8, 0.6], [0.7, 0.5, 0.4], [0.6, 0.5, 0.4, 0.3]]
    _text(folder, "user-ubm", "user.json", json.dumps({"model": "ubm", "examination": rows}))


def _pages(folder: Path) -> None:
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    rows = [
        {"doc_id": f"p{n}", "url": f"http://x.org/{n}", "html": _PAGE.format(n=n)} for n in range(4)
    ]
    for packed in (False, True):
        sink = io.BytesIO()
        writer = WARCWriter(sink, gzip=packed)
        for row in rows:
            headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], "HTTP/1.1")
            record = writer.create_warc_record(
                row["url"],
                "response",
                payload=io.BytesIO(row["html"].encode()),
                http_headers=headers,
                warc_headers_dict={"WARC-Date": "2024-01-01T00:00:00Z"},
            )
            writer.write_record(record)
        name = "pages.warc.gz" if packed else "pages.warc"
        _place(folder, "warc-gz" if packed else "warc", name).write_bytes(sink.getvalue())
    _text(folder, "pages-jsonl", "pages.jsonl", _lines(rows))
    _text(folder, "pages-jsonl-gz", "pages.jsonl.gz", _lines(rows))
    pq.write_table(pa.Table.from_pylist(rows), _place(folder, "pages-parquet", "pages.parquet"))
    for row in rows[:2]:
        _text(folder, "pages-html", f"{row['doc_id']}.html", row["html"])
    index = PageIndex.open_or_create(_place(folder, "page-index", "index"), Tokeniser())
    index.add(HeldPages(rows), jobs=1)


def _experiments(folder: Path) -> None:
    values = np.linspace(0, 1, 6)
    curve = PropensityResult(examination=[1.0, 0.5], mse=0.1)
    run = Run(method="dla", seed=0, metrics={"map": 0.5}, propensity=curve, seconds=1.0)
    sizes = {"queries": {"test": 6}}
    kept = KeptRuns(_place(folder, "kept-runs", "unfinished"))
    kept.keep(TASK, [Trained(run, {"map": values, "ndcg@10": values}, sizes)])
    Results(experiment="oracle-mode", settings={"seeds": [0]}, runs=[run]).write(
        _place(folder, "results", "results.json")
    )


def _learner(folder: Path) -> None:
    """The notes of a folder of versions, each in a folder of its own."""
    happened = [Happening(1.0, 1, "live", "given"), Happening(2.0, 2, "refused", "worse")]
    first = Version(1, 1.0, "live", "given", 10, None, 1.0)
    second = Version(2, 2.0, "refused", "worse", 20, 1)
    note = {
        "format": 1,
        "live": 1,
        "anchor": 1,
        "versions": [asdict(first), asdict(second)],
        "happened": [asdict(each) for each in happened],
    }
    _place(folder, "versions", "versions.json").write_text(json.dumps(note))
    curve = [1.0, 0.5]
    made = Round(2.0, 30, 4, 1.5, 1, curve, curve, curve, 0.2, 0.1, 0.3)
    place = _place(folder, "learner-record", "learner.json").parent
    LearnerRecord([made], [Alarm(1.0, "curve", "it moved")]).write(place)
    place = _place(folder, "learner-state", "learner-state.json").parent
    LearnerState(2, 1, 9, rounds=((1, 9, 1),), believed=(1.0, 0.5), rates=(0.5,)).write(place)


def _events(folder: Path) -> None:
    """A store with impressions in a segment and in none, and the features that were displayed."""
    place = _place(folder, "events", "_events.db").parent
    with EventStore(place, wait=0.0) as store:
        collector = Collector(store, Segments(place), every=0.0)
        for number in range(6):
            rows = np.full((2, 3), number, dtype="<f4").tobytes()
            shown = Impression(f"i{number}", 0.0, f"q{number % 2}", ("a", "b"), 1, features=rows)
            store.show(shown)
            asyncio.run(store.record([Event("e", f"i{number}", "ab"[number % 2])]))
            if number % 3 == 0:
                collector.collect()
    shown_features = folder / "features-as-displayed" / "shown"
    shutil.copytree(place / "_features", shown_features)
    for left in ("_features", "clicks"):
        shutil.rmtree(place / left)
