"""How long `POST /rank` takes, beside a handler that does nothing on the same server.

Run as `python -m benchmarks.service_load`; it takes about two minutes on two cores. One client in a
process of its own sends 100 documents with 33 features each, one request after the other on one
connection, to the paper's network (512-256-128). The empty handler gets the same bytes on the same
server (uvicorn, httptools, uvloop, Starlette) and answers `{}`; blocks of requests alternate.
"While learning" is a service with `--learn` that was fed clicks, whose learner runs meanwhile.

Scoring is `Model.predict` by itself; its share is that of the time of a request above the empty
one. What the service adds to a bare ONNX Runtime session, of the same model and one thread, is the
rest: HTTP, JSON, checks, the order, an id that is signed, and the impression on its way to disk.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

import dualrank as dr
from dualrank.data.scaling import Scaler
from dualrank.learning.model import Model
from dualrank.rankers.network import Network

DOCUMENTS, FEATURES, HIDDEN = 100, 33, (512, 256, 128)
BODIES, BLOCKS, PER_BLOCK = 50, 6, 300
FED = 3_000
LEAST_SHARE = 0.8


class Client:
    """One connection that asks and waits."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, path: str, body: bytes) -> bytes:
        """The body of an answer."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._read()
        head_of_answer, _, rest = received.partition(b"\r\n\r\n")
        lines = head_of_answer.lower().split(b"\r\n")
        assert b" 200 " in lines[0], received
        size = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        while len(rest) < size:
            rest += self._read()
        return rest

    def _read(self) -> bytes:
        part = self._socket.recv(1 << 20)
        assert part, "the server went away"
        return part


@contextmanager
def process(*words: str) -> Iterator[int]:
    """A server process; its port."""
    surroundings = {"OMP_NUM_THREADS": "1", **os.environ}
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=surroundings,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            line = child.stdout.readline()
            assert line, "the server did not start"
            text += line
        try:
            yield int(json.loads(text)["url"].rpartition(":")[2])
        finally:
            child.terminate()


@contextmanager
def service(folder: Path, name: str, *words: str) -> Iterator[int]:
    """`dualrank serve` with a folder of events of its own."""
    place = ["--events", str(folder / name), "--port", "0", "--max-rate", "0", "--json"]
    with process("-m", "dualrank", "serve", str(folder / "model"), *place, *words) as port:
        yield port


def serve_nothing() -> None:
    """The empty handler: it takes the bytes of a request, and answers nothing."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def nothing(request: Request) -> Response:
        await request.body()
        return Response(b"{}", media_type="application/json")

    sock = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{sock.getsockname()[1]}"}), flush=True)
    config = uvicorn.Config(
        Starlette(routes=[Route("/rank", nothing, methods=["POST"])]),
        http="httptools", loop="uvloop", lifespan="off", log_config=None, access_log=False,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[sock])


def make_model(folder: Path) -> Model:
    """The paper's network, with weights that rank somehow."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(5_000, FEATURES)).astype(np.float32)
    ranker = Network((FEATURES, *HIDDEN, 1))
    ranker.weights[-1].normal_(0, 0.1)
    model = Model(ranker, Scaler.fit(data))
    model.save(folder / "model")
    return model


def make_bodies() -> tuple[list[bytes], list[np.ndarray]]:
    """Requests with the numbers that float32 has when Python writes them, and their features."""
    rng = np.random.default_rng(1)
    bodies, matrices = [], []
    for i in range(BODIES):
        matrix = rng.normal(size=(DOCUMENTS, FEATURES)).astype(np.float32)
        documents = [
            {"doc_id": f"doc-{i}-{j}", "features": row} for j, row in enumerate(matrix.tolist())
        ]
        bodies.append(json.dumps({"query_id": f"query-{i}", "documents": documents}).encode())
        matrices.append(matrix)
    return bodies, matrices


def timed(calls: int, call: Callable[[int], object]) -> list[float]:
    """Seconds of every call."""
    seconds = []
    for i in range(calls):
        start = time.perf_counter()
        call(i)
        seconds.append(time.perf_counter() - start)
    return seconds


def beside_nothing(empty: int, asked: int, bodies: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of requests to both ports, in blocks that alternate."""
    both: tuple[list[float], list[float]] = ([], [])
    clients = Client(empty), Client(asked)

    def ask(client: Client, i: int) -> object:
        return client.send("/rank", bodies[i % BODIES])

    for client in clients:
        timed(100, partial(ask, client))
    for _ in range(BLOCKS):
        for client, found in zip(clients, both, strict=True):
            found += timed(PER_BLOCK, partial(ask, client))
    return np.array(both[0]), np.array(both[1])


def feed(client: Client, bodies: list[bytes]) -> None:
    """Lists with clicks on their upper positions, for a learner to learn from."""
    rng = np.random.default_rng(2)
    events: list[dict[str, str]] = []
    for i in range(FED):
        found = json.loads(client.send("/rank", bodies[i % BODIES]))
        for result in found["results"][:10]:
            if rng.random() < 0.5 / result["position"]:
                click = {"impression_id": found["impression_id"], "doc_id": result["doc_id"]}
                events.append(click)
        if len(events) > 500:
            client.send("/events", json.dumps({"events": events}).encode())
            events = []


def rounds(port: int) -> int:
    """How many rounds the learner has made."""
    from urllib.request import urlopen

    with urlopen(f"http://127.0.0.1:{port}/status") as answer:
        return len(json.load(answer)["rounds"])


def bare_session(model: Model, folder: Path, matrices: list[np.ndarray]) -> np.ndarray | None:
    """Seconds of ONNX Runtime by itself, on one thread; None where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    dr.export(model, "onnx", folder / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)

    def run(i: int) -> object:
        return session.run(None, {"features": matrices[i % BODIES]})

    timed(100, run)
    return np.array(timed(1_000, run))


def main() -> int:
    """Print the table; 1 where scoring is less than four fifths of what a request takes."""
    import torch

    torch.set_num_threads(1)
    bodies, matrices = make_bodies()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = make_model(folder)
        timed(100, lambda i: model.predict(matrices[i % BODIES]))
        scoring = np.array(timed(1_000, lambda i: model.predict(matrices[i % BODIES])))
        bare = bare_session(model, folder, matrices)
        with process("-m", "benchmarks.service_load", "empty") as empty:
            with service(folder, "still") as port:
                still = beside_nothing(empty, port, bodies)
            with service(folder, "learning", "--learn", "--wait", "1", "--every", "1") as port:
                feed(Client(port), bodies)
                end = time.monotonic() + 60
                while rounds(port) == 0 and time.monotonic() < end:
                    time.sleep(0.5)
                before = rounds(port)
                learning = beside_nothing(empty, port, bodies)
                made = rounds(port) - before
    print(f"{'milliseconds':<34}{'median':>8}{'99%':>8}   as ratios to the empty handler")
    for what, (none, found) in (("not learning", still), ("while learning", learning)):
        for label, values in ((f"empty handler, {what}", none), (f"/rank, {what}", found)):
            low, high = np.quantile(values, [0.5, 0.99])
            ratios = low / np.median(none), high / np.quantile(none, 0.99)
            shown = "" if values is none else f"   {ratios[0]:.2f} and {ratios[1]:.2f}"
            print(f"{label:<34}{1e3 * low:>8.3f}{1e3 * high:>8.3f}{shown}")
    print(f"{'scoring, by itself':<34}{1e3 * np.median(scoring):>8.3f}", end="")
    print(f"{1e3 * np.quantile(scoring, 0.99):>8.3f}")
    above = float(np.median(still[1]) - np.median(still[0]))
    share = float(np.median(scoring)) / above
    if bare is not None:
        print(f"{'ONNX Runtime, by itself':<34}{1e3 * np.median(bare):>8.3f}", end="")
        print(f"{1e3 * np.quantile(bare, 0.99):>8.3f}")
        added = 1e3 * float(np.median(still[1]) - np.median(bare))
        print(f"\nthe service adds {added:.3f} ms to a bare ONNX Runtime session")
    print(f"rounds of learning meanwhile: {made}")
    if made == 0:
        print("the learner ended no round meanwhile: nothing was measured while learning: FAILS")
    holds = share >= LEAST_SHARE
    print(
        f"scoring is {share:.0%} of the time of a request above the empty one; at least "
        f"{LEAST_SHARE:.0%}: {'holds' if holds else 'FAILS'}"
    )
    return int(not holds or made == 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["empty"]:
        serve_nothing()
        sys.exit()
    sys.exit(main())
