"""`serve`: from names of folders to a service that answers, with all that belongs to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualrank.data.features import read_features
from dualrank.errors import CheckpointError, SettingsError
from dualrank.extras import require
from dualrank.learning.model import Model
from dualrank.learning.model_files import MANIFEST
from dualrank.online.events.collector import Collector
from dualrank.online.events.event_store import EventStore
from dualrank.online.events.impression_ids import ImpressionIds, key_in
from dualrank.online.events.segments import Segments
from dualrank.online.records import Transport
from dualrank.online.service.feature_table import FeatureTable
from dualrank.online.service.learner_process import LearnerProcess
from dualrank.online.service.live_model import LiveModel
from dualrank.online.service.protection import read_token
from dualrank.online.service.service import Demo, Service
from dualrank.online.service.service_process import listen, run
from dualrank.online.service.service_settings import ServiceSettings
from dualrank.online.versions import OF_EVENTS, Versions
from dualrank.storage import read_json, write_text

GIVEN = "given"
"""In a folder of versions that a model was given for: the digest of that model."""
REDIS = ("redis://", "rediss://", "unix://")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Started:
    """What a service says of itself when it answers."""

    url: str
    version: int
    models: Path
    events: str


def serve(
    model: str | Path,
    events: str | Path,
    settings: ServiceSettings | None = None,
    *,
    learn: bool = False,
    learning: Mapping[str, Any] | None = None,
    features: str | Path | None = None,
    demo: Callable[[Service], Demo] | None = None,
    learner_output: Path | None = None,
    seed: int | None = None,
    ready: Callable[[Started], None] = lambda started: None,
) -> None:
    """Answer requests until the process is asked to stop.

    `model` is a model directory or a folder of versions; `events` a folder, or the URL of a Redis.
    With `learn` a child process learns from the events, by the settings of a learner that
    `learning` gives by name. `features` are those of documents that requests only name. `ready`
    hears of the start. What the learner says goes to the end of `learner_output`, or where this
    process says it.
    """
    for module in ("starlette", "uvicorn", "httptools", "prometheus_client"):
        require("serve", module)
    settings = settings or ServiceSettings()
    place = str(events)
    if learn and place.startswith(REDIS):
        raise SettingsError(
            f"{place}: a learner for many servers runs by itself, and keeps their events in a "
            "folder; see `dualrank learn`"
        )
    token = None if settings.token_file is None else read_token(settings.token_file)
    with ExitStack() as stack:
        sock = stack.enter_context(listen(settings))
        versions = open_versions(Path(model), place)
        live = LiveModel(versions)
        table = None if features is None else FeatureTable(_features(features, live))
        ids = ImpressionIds(key_in(versions.folder))
        transport = open_transport(place, settings)
        stack.callback(transport.close)
        service = Service(live, transport, ids, settings, table=table, token=token, seed=seed)
        if demo is not None:
            service.demo = demo(service)
        live.start()
        stack.callback(live.close)
        learner = None
        if learn:
            words = learner_words(versions.folder, place, features, seed or 0, learning or {})
            starts = service.metrics.learner_starts.inc
            learner = LearnerProcess(words, starts, output=learner_output)
            learner.start()
            stack.callback(learner.stop)
        url = _url(settings.host, sock.getsockname()[1])
        started = Started(url, live.current.number, versions.folder, place)
        log.info("listening on %s", url, extra={"version": started.version, "events": place})
        run(service, sock, learner, lambda: ready(started))


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def open_versions(model: Path, events: str) -> Versions:
    """The versions of a folder; of a model as it is, those in the folder of events."""
    if Versions.is_one(model):
        return Versions(model)
    if events.startswith(REDIS):
        Model.load(model)
        raise SettingsError(
            f"{model}: servers that share a Redis share a folder of versions, and this is a model; "
            "make one with `dualrank serve` on a folder of events, and give its _versions here"
        )
    folder = Path(events) / OF_EVENTS
    if not Versions.is_one(folder):
        versions = Versions.create(folder, Model.load(model))
        write_text(folder / GIVEN, _digest(model) or "")
        return versions
    versions = Versions(folder)
    if _is_among(model, versions):
        log.info("going on with the versions of %s", folder)
    else:
        log.warning(
            "%s is not what the versions of %s began with, and is not served: version %d of those "
            "goes on; to serve it, name another folder for --events, or move %s away",
            *(model, folder, versions.live.number, folder),
        )
    return versions


def _is_among(model: Path, versions: Versions) -> bool:
    """Whether a model is the one that versions were made of, or one of those still there."""
    given = versions.folder / GIVEN
    known = {_digest(versions.path(number)) for number in versions.note().versions}
    if given.exists():
        known.add(given.read_text().strip())
    return _digest(model) in known - {None, ""}


def _digest(model: Path) -> str | None:
    """By which a model is told from others; None where there is none."""
    try:
        found = read_json(model / MANIFEST, CheckpointError, within=model, constants=True)
    except (CheckpointError, OSError):
        return None
    digest = found.get("digest") if isinstance(found, dict) else None
    return digest if isinstance(digest, str) else None


def open_transport(events: str, settings: ServiceSettings) -> Transport:
    """Where events go: a store with its collector, or a Redis."""
    if events.startswith(REDIS):
        from dualrank.online.events.redis_stream import RedisStream

        return RedisStream(events)
    store = EventStore(events, wait=settings.wait)
    return _Collected(store, Collector(store, Segments(events), every=settings.every))


def learner_words(
    models: Path,
    events: str,
    features: str | Path | None,
    seed: int,
    learning: Mapping[str, Any],
) -> list[str]:
    """The command of the learner that follows these events."""
    words = ["learn", str(models), "--events", events, "--seed", str(seed)]
    for name, value in learning.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return words if features is None else [*words, "--features", str(features)]


def _features(path: str | Path, live: LiveModel) -> Any:
    model = live.current.model
    return read_features(path, count=live.current.inputs, names=model.feature_names)


class _Collected:
    """A store whose segments are written: a `Transport`."""

    def __init__(self, store: EventStore, collector: Collector) -> None:
        self._store, self._collector = store, collector.start()
        self.show, self.record, self.counts = store.show, store.record, store.counts

    @property
    def problem(self) -> str | None:
        """Why nothing can be written just now, be it events or segments of them."""
        return self._store.problem or self._collector.problem

    def close(self) -> None:
        """End the collector, and then the store."""
        self._collector.close()
        self._store.close()
