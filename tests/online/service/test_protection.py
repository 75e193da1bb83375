"""Who may ask, how often and how much."""

import asyncio
import json
from functools import partial

import pytest

from dualrank.errors import SettingsError
from dualrank.online.service.protection import (
    MOST_CLIENTS,
    RateLimit,
    RefusedError,
    Token,
    read_token,
)
from dualrank.online.service.service_settings import ServiceSettings


@pytest.mark.parametrize("path", ["/rank", "/events", "/rollback"])
@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer ", "Bearer 0123456789abcdeX", "Basic 0123456789abcdef",
     "bearer0123456789abcdef", "Bearer 0123456789abcdef0", "0123456789abcdef"],
)  # fmt: skip
def test_what_changes_something_needs_the_token(serving, token, path, given):
    asking = serving(token=token)
    answer = asking.post(path, {}, headers={"Authorization": given} if given else {})
    assert answer.status_code == 401
    assert "Authorization: Bearer TOKEN" in answer.json()["error"]
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert token not in answer.text


def test_with_the_token_all_is_open(serving, query, token, bearer):
    asking = serving(token=token)
    answer = asking.post("/rank", query(1, 2), headers=bearer)
    assert answer.status_code == 200
    event = {"impression_id": answer.json()["impression_id"], "doc_id": "d0"}
    assert asking.post("/events", event, headers=bearer).status_code == 200


def test_reading_needs_no_token(serving, token):
    asking = serving(token=token)
    for path in ("/status", "/metrics", "/healthz", "/readyz", "/docs", "/openapi.json", "/"):
        assert asking.get(path).status_code == 200


def test_without_a_token_file_nobody_takes_a_version_back(asking, bearer):
    answer = asking.post("/rollback", {}, headers=bearer)
    assert answer.status_code == 403
    assert "start it with --token-file" in answer.json()["error"]


def test_tokens_are_compared_as_bytes():
    token = Token("é" * 16)
    with pytest.raises(RefusedError):
        token.require(b"\xff")


@pytest.mark.parametrize(
    ("content", "mode", "sentence"),
    [
        (b"short", 0o600, "at least 16 signs"),
        (b"", 0o600, "at least 16 signs"),
        (b"two words of a token", 0o600, "one word"),
        (b"\xff" * 20, 0o600, "plain ASCII"),
        (b"x" * 2000, 0o600, "more than the 1,000"),
        (b"0123456789abcdef", 0o644, "everybody can read this token; chmod 600"),
    ],
)
def test_a_file_that_is_no_token_is_refused(tmp_path, content, mode, sentence):
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(SettingsError, match=sentence):
        read_token(path)


def test_a_token_is_the_only_word_of_its_file(tmp_path):
    path = tmp_path / "token"
    path.write_text("0123456789abcdef\n")
    path.chmod(0o600)
    assert read_token(path) == "0123456789abcdef"
    with pytest.raises(SettingsError, match="cannot be read"):
        read_token(tmp_path / "none")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "10.0.0.1", ""])
def test_a_page_of_another_host_that_leads_here_is_refused(asking, host):
    """A name that somebody lets point to 127.0.0.1 makes a browser ask, and read the answer."""
    answer = asking.get("/status", headers={"Host": host})
    assert answer.status_code == 421
    assert "sent to another host" in answer.json()["error"]


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:80", "[::1]:8000"])
def test_names_of_this_machine_are_answered(asking, host):
    assert asking.get("/healthz", headers={"Host": host}).status_code == 200


def test_with_a_token_any_name_is_answered(serving, token):
    asking = serving(token=token)
    assert asking.get("/healthz", headers={"Host": "ranking.example"}).status_code == 200


def test_a_client_that_asks_too_often_waits(serving, monkeypatch):
    clockless = partial(RateLimit, clock=lambda: 0.0)
    monkeypatch.setattr("dualrank.online.service.service_app.RateLimit", clockless)
    asking = serving(max_rate=3)
    codes = [asking.get("/healthz").status_code for _ in range(4)]
    assert codes[:3] == [200] * 3
    last = asking.get("/healthz")
    assert codes[3] == last.status_code == 429
    assert int(last.headers["retry-after"]) >= 1
    assert "more than 3 times a second" in last.json()["error"]


def test_buckets_fill_again_and_clients_do_not_share():
    now = [0.0]
    limit = RateLimit(2.0, clock=lambda: now[0])
    assert [limit.wait_of("a") for _ in range(3)] == [0, 0, 0.5]
    assert limit.wait_of("b") == 0
    now[0] = 0.5
    assert limit.wait_of("a") == 0
    assert limit.wait_of("a") == pytest.approx(0.5)
    now[0] = 100.0
    assert [limit.wait_of("a") > 0 for _ in range(3)] == [False, False, True]


def test_the_clients_of_one_network_share_a_bucket():
    limit = RateLimit(1.0, clock=lambda: 0.0)
    assert limit.wait_of("2001:db8::1") == 0
    assert limit.wait_of("2001:db8::2") > 0
    assert limit.wait_of("2001:db8:0:1::1") == 0


def test_the_table_of_clients_has_an_end():
    limit = RateLimit(1.0)
    for i in range(MOST_CLIENTS + 500):
        limit.wait_of(f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}")
    assert len(limit) == MOST_CLIENTS


def test_a_large_body_is_refused_by_its_name_and_by_its_size(serving, query):
    asking = serving(max_bytes=1_000)
    answer = asking.post("/rank", b"x" * 1_001)
    assert answer.status_code == 413
    assert "larger than the 1,000 bytes" in answer.json()["error"]

    async def chunks():
        for _ in range(100):
            yield b" " * 100

    async def once():
        async with asking.client() as client:
            kind = {"Content-Type": "application/json"}
            return await client.post("/rank", content=chunks(), headers=kind)

    answer = asyncio.run(once())
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"
    assert asking.post("/rank", query(1, 2)).status_code == 200


def call(app, path, receive, headers=()):
    """Ask as a server would, with a body that comes as `receive` says."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": [(b"content-type", b"application/json"), *headers],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "scheme": "http",
        "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    return app(scope, receive, send), sent


def answered(sent):
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_slow_client_is_not_waited_for(serving):
    asking = serving(patience=0.1)

    async def receive():
        await asyncio.Event().wait()

    answer, sent = call(asking.app, "/rank", receive)
    asyncio.run(answer)
    status, body = answered(sent)
    assert status == 408
    assert "longer than 0.1 seconds" in body["error"]


def test_a_client_that_goes_away_is_let_go(asking):
    async def receive():
        return {"type": "http.disconnect"}

    answer, sent = call(asking.app, "/events", receive)
    asyncio.run(answer)
    assert answered(sent)[0] == 400


@pytest.mark.parametrize("declared", [b"99999999999999999999999999", b"-1", b"x", b"\xb2"])
def test_a_size_that_is_none_harms_nobody(serving, declared):
    asking = serving(max_bytes=1_000)

    async def receive():
        return {"type": "http.request", "body": b"{}"}

    answer, sent = call(asking.app, "/rank", receive, [(b"content-length", declared)])
    asyncio.run(answer)
    assert answered(sent)[0] in (413, 422)


def test_too_many_at_once_are_told_to_come_back(serving):
    asking = serving(max_waiting=2)

    async def all_at_once():
        release = asyncio.Event()

        async def receive():
            await release.wait()
            return {"type": "http.request", "body": b"{}"}

        calls = [call(asking.app, "/rank", receive) for _ in range(3)]
        tasks = [asyncio.ensure_future(answer) for answer, _ in calls]
        await tasks[2]
        release.set()
        await asyncio.gather(*tasks)
        return [answered(sent) for _, sent in calls]

    found = asyncio.run(all_at_once())
    assert [status for status, _ in found] == [422, 422, 503]
    assert "2 requests are being answered already" in found[2][1]["error"]
    assert asking.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"explore": 0.7}, "explore=0.7: the share of lists with an exchange is 0 to 0.5"),
        ({"explore": -0.1}, "0 to 0.5"),
        ({"explore": float("nan")}, "0 to 0.5"),
    ],
)
def test_settings_out_of_range_are_refused(settings, sentence):
    with pytest.raises(SettingsError, match=sentence):
        ServiceSettings(**settings)
