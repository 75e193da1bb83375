"""`dualrank serve --demo` on the command line: what it refuses, and in which words."""

import pytest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--demo", "model"], "--demo has a model, events and features of its own"),
        (["--demo", "--events", "e"], "--demo has a model, events and features of its own"),
        ([], "serve needs a MODEL; `dualrank serve --demo` shows it without"),
        (["model"], "serve needs --events, the folder for what users do"),
        (["model", "--events", "e", "--out", "o"], "--out is the folder of --demo"),
        (
            ["model", "--events", "e", "--half-life", "9"],
            "--half-life is for a service that learns",
        ),
        (["--demo", "--learn", "--steps", "9"], "--steps is for a service that learns"),
        (["model", "--events", "e", "--learn", "--held-out", "2"], "between 0 and 1, not 2"),
        (["--demo", "--port", "0", "--out", "{used}"], "holds something that this command did not"),
    ],
)
def test_what_contradicts_itself_is_one_sentence(command, tmp_path, words, said):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "mine.txt").write_text("mine")
    code, _, told = command("serve", *(word.format(used=tmp_path / "used") for word in words))
    assert code == 2
    assert said in told
    assert told.count("\n") == 1


def test_settings_of_the_learner_are_handed_on_as_they_were_typed(command, monkeypatch):
    heard = {}
    monkeypatch.setattr(
        "dualrank.online.service.serving.serve", lambda *places, **more: heard.update(more)
    )
    monkeypatch.setattr("dualrank.online.service.structured_log.log_as_json", lambda: None)
    words = ["--learn", "--half-life", "5000", "--round-sessions", "700", "--seed", "3"]
    assert command("serve", "model", "--events", "e", *words)[0] == 0
    assert heard["learning"] == {"half_life": 5000.0, "round_sessions": 700}
    assert heard["seed"] == 3


def test_a_folder_in_which_a_demo_ran_is_not_taken_again(tmp_path):
    from dualrank.errors import SettingsError
    from dualrank.online.demo.demo import run_demo

    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "versions.json").write_text("{}")
    with pytest.raises(SettingsError, match="there was a demo already; name another folder"):
        run_demo(tmp_path)
