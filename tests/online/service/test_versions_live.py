"""Which version answers: one from start to end, the new one soon, never a broken one."""

import asyncio
import json
import shutil
import threading

import pytest

from dualrank.online.service.live_model import LiveModel
from dualrank.online.service.serving import open_versions
from dualrank.online.versions import Versions

from ...waiting import wait_until


def test_every_answer_is_of_the_version_that_it_names(asking, versions, model_numbered, query):
    """While versions go live one after the other, and one is taken back, under requests."""
    live = asking.service.live
    body = json.dumps({"queries": [query(1.0, 2.0, 3.0), query(4.0)]}).encode()
    seen, done = set(), threading.Event()

    def publish():
        for number in range(2, 12):
            versions.add(model_numbered(number), "more")
            versions.go_live(number, "better")
            live.look()
            wait_until(lambda number=number: number in seen, pause=0.001)
        versions.take_back(11, "worse")
        live.look()
        done.set()

    async def ask():
        while not done.is_set():
            rankings = json.loads(await asking.service.rank(body))["rankings"]
            numbers = {each["version"] for each in rankings}
            assert len(numbers) == 1
            (number,) = numbers
            for each in rankings:
                for result in each["results"]:
                    place = int(result["doc_id"][1:])
                    expected = [1.0, 2.0, 3.0][place] if len(each["results"]) > 1 else 4.0
                    assert result["score"] == number * expected
            seen.add(number)
            await asyncio.sleep(0)

    async def both():
        thread = threading.Thread(target=publish, daemon=True)
        thread.start()
        await asyncio.gather(*(ask() for _ in range(4)))
        thread.join()

    asyncio.run(both())
    assert seen >= set(range(2, 12))
    found = json.loads(asyncio.run(asking.service.rank(body)))
    assert {each["version"] for each in found["rankings"]} == {10}
    assert {each.version for each in asking.transport.shown} == seen | {10}


def test_a_new_version_is_followed(versions, model_numbered):
    live = LiveModel(versions)
    live.start()
    try:
        versions.add(model_numbered(2), "more")
        versions.go_live(2, "better")
        wait_until(lambda: live.current.number == 2)
        assert live.note.live == 2
    finally:
        live.close()


def test_a_version_published_while_the_note_is_first_read_is_not_missed(
    versions, model_numbered, monkeypatch
):
    read = Versions.note

    def publish_after(self):
        monkeypatch.undo()
        found = read(self)
        versions.add(model_numbered(2), "more")
        versions.go_live(2, "better")
        return found

    monkeypatch.setattr(Versions, "note", publish_after)
    live = LiveModel(versions)
    live.look()
    assert live.current.number == 2


def test_a_version_that_cannot_be_loaded_leaves_the_old_one(
    asking, versions, model_numbered, query, caplog
):
    versions.add(model_numbered(2), "more")
    (versions.path(2) / "ranker.safetensors").write_bytes(b"torn")
    versions.go_live(2, "better")
    live = asking.service.live
    for _ in range(3):
        live.look()
    assert asking.post("/rank", query(1, 2)).json()["version"] == 1
    assert live.failures == 1
    assert "version 2 cannot be loaded, 1 goes on" in caplog.text
    text = asking.get("/metrics").text
    assert "dualrank_versions_not_loaded_total 1.0" in text
    assert "dualrank_live_version 1.0" in text
    versions.add(model_numbered(3), "mended")
    versions.go_live(3, "better")
    live.look()
    assert asking.post("/rank", query(1, 2)).json()["version"] == 3


def test_a_version_is_tried_again_later(versions, model_numbered, monkeypatch):
    live = LiveModel(versions)
    versions.add(model_numbered(2), "more")
    whole = (versions.path(2) / "ranker.safetensors").read_bytes()
    (versions.path(2) / "ranker.safetensors").write_bytes(b"torn")
    versions.go_live(2, "better")
    live.look()
    (versions.path(2) / "ranker.safetensors").write_bytes(whole)
    live.look()
    assert live.current.number == 1
    monkeypatch.setattr("dualrank.online.service.live_model.TRY_AGAIN", 0.0)
    live.look()
    assert live.current.number == 2
    assert live.failures == 1


def test_a_note_that_cannot_be_read_leaves_the_old_version(versions, model_numbered, monkeypatch):
    live = LiveModel(versions)
    note = versions.folder / "versions.json"
    whole = note.read_text()
    note.write_text("{")
    live.look()
    assert live.current.number == 1
    note.write_text(whole)
    monkeypatch.setattr("dualrank.online.service.live_model.TRY_AGAIN", 0.0)
    live.look()
    assert live.current.number == 1


def test_rollback_takes_the_live_version_back(
    serving, versions, model_numbered, query, bearer, token
):
    versions.add(model_numbered(2), "more")
    versions.go_live(2, "better")
    asking = serving(token=token)
    asking.headers = bearer
    assert asking.post("/rank", query(1, 2)).json()["version"] == 2
    answer = asking.post("/rollback", {"why": "users complain"})
    assert answer.status_code == 200
    assert (answer.json()["before"], answer.json()["live"]["number"]) == (2, 1)
    assert asking.post("/rank", query(1, 2)).json()["version"] == 1
    found = asking.get("/status").json()
    assert found["live"]["why"] == "version 2 was taken back: users complain"
    assert found["versions"][1]["state"] == "taken back"
    assert asking.post("/rollback", {"to": 2}).json()["live"]["number"] == 2
    # What a newer version replaces is nothing that was found wanting.
    assert versions.note().versions[1].state == "replaced"


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"to": 7}, 409, "there is no model of version 7"),
        ({"to": 1}, 409, "version 1 is the one that is live"),
        ({}, 409, "no version was live before 1"),
        ({"to": "../../x"}, 422, "to: expected a valid integer"),
        ({"to": -1}, 422, "to: expected greater than or equal to 1"),
        ({"to": 10**30}, 422, "to: expected"),
        ({"why": "x\x1b[31m"}, 422, "why: expected text without control characters"),
        ({"why": "x" * 501}, 422, "why: string should have at most 500"),
    ],
)
def test_a_rollback_that_cannot_be_is_refused(serving, token, bearer, body, status, sentence):
    asking = serving(token=token)
    answer = asking.post("/rollback", body, headers=bearer)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


def test_another_model_than_the_versions_began_with_is_not_passed_over_in_silence(
    tmp_path, model_numbered, caplog
):
    for number in (1, 2):
        model_numbered(number).save(tmp_path / f"model-{number}")
    events = str(tmp_path / "events")
    versions = open_versions(tmp_path / "model-1", events)
    versions.add(model_numbered(3), "more")
    versions.go_live(2, "better")
    shutil.rmtree(versions.path(1))  # as old versions go
    for known in (tmp_path / "model-1", versions.path(2)):
        assert open_versions(known, events).live.number == 2
    assert "not served" not in caplog.text
    for other in ("model-2", "no-such-model"):
        caplog.clear()
        assert open_versions(tmp_path / other, events).live.number == 2
        assert f"{other} is not what the versions of" in caplog.text
        assert "version 2 of those goes on; to serve it, name another folder" in caplog.text
