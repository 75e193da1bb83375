"""The table of all files that dualrank reads: what is mutated, how, and what reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from . import readings, seals
from .mutations import BYTES, TEXT, Mutation
from .seeds import CHECKPOINTS, CLICK_MODELS, EXPORTS, RANKERS
from .structures import ARCHIVE, ARRAY, JSON, JSON_LINES, PARQUET, TENSORS, gzipped, zstandard

_MUTATIONS: dict[str, tuple[Mutation, ...]] = {
    ".parquet": PARQUET,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
    ".json": JSON,
    ".safetensors": TENSORS,
    ".npz": ARCHIVE,
    ".npy": ARRAY,
    **dict.fromkeys((".csv", ".tsv", ".txt", ".trec", ".qrels", ".html", ".warc"), TEXT),
}


@dataclass(frozen=True)
class Format:
    """Files of one kind: `files` are patterns of what is mutated within the format's folder.

    `read` gives the meaning of a folder. With a `seal` a file carries a digest: whatever is changed
    must be noticed, unless the digest is mended too, which `seal` does as an attacker would. With
    `may_lack_digest` it is removed instead, since files of earlier versions have none.
    """

    name: str
    files: tuple[str, ...]
    read: Callable[[Path], Any]
    seal: Callable[[Path], None] | None = None
    may_lack_digest: bool = False

    def vouched_for(self, folder: Path) -> bool:
        """Whether damage to what lies in the folder must be noticed."""
        if self.may_lack_digest:
            return any(seals.has_digest(file) for file in folder.iterdir())
        return self.seal is not None

    def mutations_of(self, file: Path) -> tuple[Mutation, ...]:
        """What can happen to a file of this name."""
        if file.suffix == ".gz":
            return gzipped(self.mutations_of(file.with_suffix("")))
        if file.suffix == ".zst":
            return zstandard(self.mutations_of(file.with_suffix("")))
        return _MUTATIONS.get(file.suffix, BYTES)


def _one(name: str, file: str, read: Callable[[Path], Any]) -> Format:
    """A format of one file."""
    return Format(name, (file,), lambda at: read(at / file))


def _digested(name: str, file: str, read: Callable[[Path], Any]) -> Format:
    """A format of one file, which carries a digest unless an earlier version wrote it."""
    return Format(
        name, (file,), lambda at: read(at / file), lambda at: seals.without_digest(at / file), True
    )


def _ubi(name: str, queries: str, events: str) -> Format:
    """Two files, or the same twice."""
    return Format(name, (queries, events), lambda at: readings.ubi(at / queries, at / events))


def _formats() -> list[Format]:
    log = partial(readings.log, contexts=["device"], event_kinds=["purchase"])
    tolerant = partial(log, max_bad_share=1.0)
    return [
        _one("log-parquet", "log.parquet", tolerant),
        _one("log-csv", "log.csv", log),
        _one("log-tsv", "log.tsv", tolerant),
        _one("log-csv-gz", "log.csv.gz", tolerant),
        _one("log-jsonl", "log.jsonl", tolerant),
        _one("log-jsonl-zst", "log.jsonl.zst", log),
        _ubi("ubi-jsonl", "queries.jsonl", "events.jsonl"),
        _ubi("ubi-parquet", "queries.parquet", "events.parquet"),
        _ubi("ubi-bulk", "ubi.ndjson", "ubi.ndjson"),
        _one("interleavings", "lists.parquet", readings.interleavings),
        _one("interleaved-log-parquet", "log.parquet", readings.interleaved),
        _one("interleaved-log-csv", "log.csv", readings.interleaved),
        _one("interleaved-events", "events.ndjson", readings.interleaved),
        _digested("reduced-log", "log.parquet", readings.log),
        Format("days-of-log", ("*.parquet",), readings.log, seals.without_digests, True),
        Format(
            "log-in-shards",
            ("log/shards.json", "log/00000/*"),
            lambda at: readings.shards(at / "log"),
            lambda at: seals.shards(at / "log"),
        ),
        _one("reduced-log-first-cut", "log.parquet", readings.log),
        _one("features-columns", "features.parquet", readings.features),
        _one("features-lists", "features.parquet", readings.features),
        _one("features-in-batches", "features.parquet", readings.features_in_batches),
        _one("lists-in-batches", "features.parquet", readings.features_in_batches),
        Format(
            "features-as-displayed",
            ("shown/*.parquet",),
            lambda at: readings.features(at / "shown"),
        ),
        _one("events", "_events.db", readings.stored_events),
        _one("letor", "data.txt", readings.letor),
        _one("letor-gz", "data.txt.gz", readings.letor),
        _one("letor-zst", "data.txt.zst", readings.letor),
        Format(
            "letor-cache",
            ("data.txt.dualrank-cache/**/*",),
            lambda at: readings.letor(at / "data.txt", cache=True),
            seals.cache,
        ),
        *(_one(f"run-{end}", f"run.{end}", readings.run) for end in ("parquet", "csv", "trec")),
        _one("qrels", "judged.qrels", readings.qrels),
        *(
            _one(f"{name}-{end.replace('.', '-')}", f"{name}.{end}", read)
            for name, read in (("pairs", readings.pairs), ("queries", readings.queries))
            for end in ("parquet", "csv", "tsv.gz", "jsonl")
        ),
        _one("pairs-qrels", "pairs.qrels", readings.pairs),
        *(
            Format(
                f"model-{kind}",
                ("model/*",),
                lambda at: readings.model(at / "model"),
                lambda at: seals.manifest(at / "model" / "manifest.json"),
            )
            for kind in (*RANKERS, "first-cut")
        ),
        *(
            Format(
                f"checkpoint-{kind}",
                ("checkpoint.safetensors",),
                partial(readings.checkpoint, ranker=kind),
                seals.checkpoint,
            )
            for kind in CHECKPOINTS
        ),
        *(
            _one(name, f"{name}.json", readings.propensity)
            for name in ("propensity-click-through", "propensity-by-device")
        ),
        *(
            _digested(f"click-model-{name}-{end}", f"model.{end}", readings.click_model)
            for name in CLICK_MODELS
            for end in ("parquet", "json")
        ),
        _one("click-model-first-cut", "model.parquet", readings.click_model),
        *(_one(f"user-{name}", "user.json", readings.user) for name in ("dbn", "ubm")),
        _one("warc", "pages.warc", readings.pages),
        _one("warc-gz", "pages.warc.gz", readings.pages),
        _one("pages-jsonl", "pages.jsonl", readings.pages),
        _one("pages-jsonl-gz", "pages.jsonl.gz", readings.pages),
        _one("pages-parquet", "pages.parquet", readings.pages),
        Format("pages-html", ("*.html",), readings.pages),
        Format(
            "page-index",
            ("index/**/*",),
            lambda at: readings.index(at / "index"),
            lambda at: seals.manifest(at / "index" / "dualrank.json"),
        ),
        Format(
            "kept-runs", ("unfinished/*.npz",), lambda at: readings.kept_runs(at / "unfinished")
        ),
        _one("results", "results.json", readings.results),
        Format("versions", ("versions.json",), readings.versions),
        Format("learner-record", ("learner.json",), readings.learner_record),
        Format("learner-state", ("learner-state.json",), readings.learner_state),
        *(
            Format(
                f"export-{target}",
                (f"model.{ending}",),
                partial(readings.beside_an_export, target=target),
            )
            for target, ending in EXPORTS.items()
        ),
    ]


FORMATS: dict[str, Format] = {format.name: format for format in _formats()}
