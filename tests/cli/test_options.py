"""Dataclasses become options, and what is typed becomes dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from dualrank.cli.options import Typed, Without, add_command, imports
from dualrank.errors import SettingsError

if TYPE_CHECKING:
    from decimal import Decimal
    from textwrap import TextWrapper


@dataclass(frozen=True)
class Settings:
    """What a library might have."""

    first_step: Annotated[int, "Where to begin."] = 3
    kind: Annotated[Literal["slow", "fast"], "How."] = "slow"
    other: Annotated[Literal["a", "b"] | None, "Or how."] = None
    folder: Annotated[Path | None, "Where."] = None
    quiet: Annotated[bool, "Say nothing."] = False
    check: Annotated[bool, "Look first."] = True
    sizes: Annotated[tuple[int, ...], "Sizes, separated by commas."] = (256, 128)
    names: Annotated[tuple[str, ...] | None, "Names, separated by commas.", ","] = None
    contexts: Annotated[tuple[str, ...], "Repeatable."] = ()
    columns: Annotated[Mapping[str, str], "Repeatable."] = field(default_factory=dict)
    share: Annotated[float, "A share.", {"name": "--part", "min": 0, "max": 1}] = 0.5
    seed: int = 0
    hidden: Decimal | None = None

    def __post_init__(self) -> None:
        if self.first_step < 0:
            raise SettingsError(f"first_step is 0 or more, not {self.first_step}")


@dataclass(frozen=True)
class Other:
    """Shares a field, and has one that must be given."""

    out: Annotated[Path, "A file."]
    first_step: Annotated[int, "Where to begin."] = 3


def run(function, *words):
    app = typer.Typer(pretty_exceptions_enable=False)
    add_command(app, function)
    app.callback()(lambda: None)
    name = function.__name__
    return CliRunner().invoke(app, [name, *words], catch_exceptions=True)


@pytest.fixture
def received():
    return {}


@pytest.fixture
def work(received):
    def work(
        log: Annotated[str, typer.Argument(help="A log.")],
        *,
        settings: Settings,
        seed: Annotated[int, typer.Option("--seed", help="A seed.")] = 0,
        typed: Typed,
    ) -> None:
        """Do something."""
        received.update(log=log, settings=settings, seed=seed, typed=typed)

    return work


def test_defaults_are_those_of_the_dataclass(work, received):
    assert run(work, "x").exit_code == 0
    assert received["settings"] == Settings()
    assert received["typed"] == {"log": "x"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--first-step", "7"], {"first_step": 7}),
        (["--kind", "fast", "--other", "b"], {"kind": "fast", "other": "b"}),
        (["--folder", "somewhere"], {"folder": Path("somewhere")}),
        (["--quiet", "--no-check"], {"quiet": True, "check": False}),
        (["--sizes", "8, 4"], {"sizes": (8, 4)}),
        (["--names", "dla,naive"], {"names": ("dla", "naive")}),
        (["--context", "a,b", "--context", "c"], {"contexts": ("a,b", "c")}),
        (["--column", "doc_id=item", "--column", "a=b=c"],
         {"columns": {"doc_id": "item", "a": "b=c"}}),
        (["--part", "0.25"], {"share": 0.25}),
    ],
)  # fmt: skip
def test_what_is_typed_reaches_its_field(work, received, words, expected):
    assert run(work, "x", *words).exit_code == 0
    assert received["settings"] == Settings(**expected)
    assert received["typed"] == {"log": "x", **expected}


def test_a_parameter_of_the_function_fills_the_field_of_its_name(work, received):
    assert run(work, "x", "--seed", "5").exit_code == 0
    assert received["seed"] == received["settings"].seed == 5


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sizes", "many"], "--sizes takes whole numbers separated by commas, not 'many'"),
        (["--column", "doc_id"], "--column takes NAME=VALUE, not 'doc_id'"),
        (["--first-step", "-1"], "--first-step is 0 or more, not -1"),
    ],
)
def test_wrong_values_are_said_in_options(work, words, sentence):
    assert str(run(work, "x", *words).exception) == sentence


@pytest.mark.parametrize("words", [["--kind", "odd"], ["--part", "2"], ["--no-quiet"]])
def test_words_that_typer_refuses(work, words):
    assert run(work, "x", *words).exit_code == 2


def test_help_tells_fields_and_defaults(work, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    shown = run(work, "--help").output
    for words in ("--first-step", "Where to begin.", "[default: 3]", "256,128", "slow|fast",
                  "--check", "--no-check", "Do something."):  # fmt: skip
        assert words in shown
    assert "--no-quiet" not in shown
    assert "--hidden" not in shown


def test_a_field_of_two_dataclasses_is_one_option():
    found = []

    def both(*, settings: Settings, other: Other) -> None:
        found.append((settings, other))

    assert run(both).exit_code == 2
    assert run(both, "--out", "file", "--first-step", "9").exit_code == 0
    assert found == [(Settings(first_step=9), Other(Path("file"), 9))]


def test_inherited_fields_are_understood_where_they_were_written():
    made = make_dataclass(
        "Made", [("more", Annotated[int, "More."], 1)], bases=(Settings,), frozen=True
    )
    found = []

    def inherits(*, made: made) -> None:
        found.append(made)

    inherits.__annotations__["made"] = made
    assert run(inherits, "--more", "2", "--first-step", "4").exit_code == 0
    assert found == [made(more=2, first_step=4)]


def test_fields_can_be_left_out():
    found = []

    def some(*, settings: Annotated[Settings, Without("first_step")]) -> None:
        found.append(settings)

    assert run(some, "--first-step", "9").exit_code == 2
    assert run(some, "--quiet").exit_code == 0
    assert found == [Settings(quiet=True)]


def test_names_are_imported_when_the_command_is_asked_for():
    @imports("textwrap:TextWrapper", "nowhere.at_all:Missing")
    def odd(*, wrapper: TextWrapper) -> None:
        """Never runs."""

    assert "Never runs." in CliRunner().invoke(_app_with(odd), ["--help"]).output
    assert isinstance(run(odd).exception, ModuleNotFoundError)


def _app_with(function):
    app = typer.Typer()
    add_command(app, function)
    app.callback()(lambda: None)
    return app
