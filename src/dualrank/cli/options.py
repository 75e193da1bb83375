"""A plain function as a command: a parameter that is a dataclass becomes an option per field.

A field is an option if its annotation says so, `Annotated[int, "Training steps."]`; others keep
their default. A dictionary after the help has further keywords of `typer.Option`: `{"min": 1}`, or
another `name`.
A field `first_position` is `--first-position`; a `Literal` is a choice, a bool a flag. Tuples of
numbers are given with commas; tuples of text (`contexts`) one by one (`--context`), or with commas
where `","` stands after the help; mappings (`columns`) as `--column KEY=VALUE`.

A name that several dataclasses, or a dataclass and the function itself, have is one option for
all of them. `Annotated[Settings, Without("seed")]` leaves fields out. A parameter of type `Typed`
gets what the user typed, by name, without any default. A parameter whose annotation has an `Output`
names what is written: the command gets `--force`, and what stands there is checked (`outputs.py`).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from dualrank.cli.outputs import Output, check_output
from dualrank.cli.wording import in_options
from dualrank.errors import DualrankError, SettingsError

Function = TypeVar("Function", bound=Callable[..., None])


class Typed(dict[str, Any]):
    """What the user typed, by the names of fields and parameters."""


class Without:
    """Fields that a command does not offer; they keep their default."""

    def __init__(self, *names: str) -> None:
        self.names = names


def imports(*places: str) -> Callable[[Function], Function]:
    """Names in a function's annotations, "module:Name", imported when the command is asked for."""

    def note(function: Function) -> Function:
        function.places = places  # type: ignore[attr-defined]
        return function

    return note


def add_command(
    app: typer.Typer,
    function: Callable[..., None],
    name: str | None = None,
    about: str | None = None,
) -> None:
    """Register a command whose options are made, and their dataclasses imported, when it runs.

    `about` is what a list of commands says of it, unless the function has a docstring.
    """

    class Later(TyperCommand):
        def make_context(self, *words: Any, **more: Any) -> Any:
            alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
            alone.command(name)(expanded(function))
            return typer.main.get_command(alone).make_context(*words, **more)

    def listed() -> None:
        pass

    listed.__doc__, listed.__name__ = function.__doc__ or about, function.__name__
    app.command(name, cls=Later)(listed)


def expanded(function: Callable[..., None]) -> Callable[..., None]:
    """The function with options in the place of dataclasses, as Typer understands it."""
    late = [place.split(":") for place in getattr(function, "places", ())]
    names = {name: getattr(import_module(module), name) for module, name in late}
    own = inspect.signature(function, locals=names, eval_str=True).parameters
    kinds: dict[str, type[Any]] = {}
    hidden: dict[str, set[str]] = {}
    for name, parameter in own.items():
        kind, *notes = get_args(parameter.annotation) or (parameter.annotation,)
        if inspect.isclass(kind) and dataclasses.is_dataclass(kind):
            kinds[name] = kind
            hidden[name] = {n for note in notes if isinstance(note, Without) for n in note.names}
    outputs = {name: kind for name, each in own.items() for kind in _outputs(each.annotation)}
    typed = [name for name, parameter in own.items() if parameter.annotation is Typed]
    parameters: dict[str, inspect.Parameter] = {}
    readers: dict[str, Callable[[Any], Any]] = {}
    for name, parameter in own.items():
        if name not in kinds and name not in typed:
            parameters[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for field, annotation in _fields(kinds[name]) if name in kinds else ():
            if field.name not in {*parameters, *own, *hidden[name]}:
                parameters[field.name], readers[field.name] = _option(field, annotation)

    if outputs:
        parameters["force"] = _FORCE

    def command(context: typer.Context, **values: Any) -> None:
        words = [word for each in context.command.params for word in each.opts]
        options = [word.lstrip("-") for word in words if word.startswith("-")]
        try:
            values |= {name: read(values[name]) for name, read in readers.items()}
            given = {name: values[name] for name in own if name in values}
            for name, kind in kinds.items():
                fields = {field.name for field in dataclasses.fields(kind)} - hidden[name]
                given[name] = kind(**{key: values[key] for key in fields & values.keys()})
            read = {name: value for name, value in values.items() if name not in outputs}
            for name, written in outputs.items():
                if values[name] is not None:
                    check_output(values[name], written, read, force=values["force"])
            for name in typed:
                given[name] = Typed((k, v) for k, v in values.items() if _is_typed(context, k))
            function(**given)
        except DualrankError as error:
            error.args = (in_options(str(error), options),)
            raise

    first = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    # Python wants those without a default first only where they can be given by position.
    signature = inspect.Signature([first, *parameters.values()])
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {}
    # A function without a docstring does what its dataclass says.
    described = [function, *kinds.values()]
    command.__doc__ = next((each.__doc__ for each in described if each.__doc__), None)
    command.__name__ = function.__name__
    return command


_FORCE = inspect.Parameter(
    "force",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option("--force", help="Replace what is there, whoever wrote it."),
    ],
)


def _outputs(annotation: Any) -> Iterator[Output]:
    """What a parameter names to be written, if it does."""
    if get_origin(annotation) is Annotated:
        yield from (note for note in get_args(annotation) if isinstance(note, Output))


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def _fields(kind: type) -> Iterator[tuple[dataclasses.Field[Any], Any]]:
    """The fields that are options, with their annotations."""
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        if get_origin(hints[field.name]) is Annotated:
            yield field, hints[field.name]


def _option(
    field: dataclasses.Field[Any], annotation: Any
) -> tuple[inspect.Parameter, Callable[[Any], Any]]:
    """A parameter for Typer, and what makes the field's value of the one that Typer gives."""
    kind, *notes = get_args(annotation)
    texts = [note for note in notes if isinstance(note, str)]
    more = {key: value for note in notes if isinstance(note, dict) for key, value in note.items()}
    default: Any = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    shown = inspect.Parameter.empty if default is dataclasses.MISSING else default
    union = get_origin(kind) in (Union, UnionType)
    inner = next(part for part in get_args(kind) if part is not NoneType) if union else kind
    holds, items = get_origin(inner), get_args(inner)
    name = more.pop("name", "--" + field.name.replace("_", "-"))
    read: Callable[[Any], Any] | None = None
    if holds is tuple and (items[0] is not str or "," in texts):
        kind, read = str | None, partial(_split, name, items[0])
        shown = ",".join(map(str, default)) if isinstance(default, tuple) else shown
    elif holds is tuple or (inspect.isclass(holds) and issubclass(holds, Mapping)):
        name, kind, shown = name.removesuffix("s"), list[str] | None, None
        form = more.setdefault("metavar", "TEXT" if holds is tuple else "NAME=VALUE")
        read = tuple if holds is tuple else partial(_pairs, name, form)
    elif inner is bool and default is True:
        name += f"/--no-{name[2:]}"
    parameter = inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=shown,
        annotation=Annotated[kind, typer.Option(name, help=texts[0], **more)],
    )

    def value_of(given: Any) -> Any:
        if given is None or given == []:
            return default
        return given if read is None else read(given)

    return parameter, value_of


def _split(name: str, item: Callable[[str], Any], text: str) -> tuple[Any, ...]:
    try:
        parts = [] if text in ("", "none") else text.split(",")
        return tuple(item(part.strip()) for part in parts)
    except ValueError as error:
        what = "whole numbers" if item is int else "numbers"
        raise SettingsError(f"{name} takes {what} separated by commas, not {text!r}") from error


def _pairs(name: str, form: str, texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for key, equals, value in pairs:
        if not (key and value):
            raise SettingsError(f"{name} takes {form}, not {key + equals + value!r}")
    return {key: value for key, _, value in pairs}
