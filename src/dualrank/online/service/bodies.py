"""What requests may say, as types: they are checked by these, and `openapi.py` describes them.

Bytes go into pydantic's parser and come out checked, so that nothing is read twice. What it does
not see by itself is looked for here: a name that stands twice in an object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, TypeVar

from pydantic import ConfigDict, FailFast, Field, TypeAdapter, ValidationError, with_config
from pydantic_core import from_json
from typing_extensions import TypedDict

from dualrank.data.log.event_amounts import LARGEST
from dualrank.errors import DataError
from dualrank.online.events.event_kinds import LONGEST_KIND
from dualrank.sentences import shortened
from dualrank.storage import parse_json

LONGEST_ID = 256
TEXT = r"^[^\x00-\x1f\x7f-\x9f]*$"
"""Ids are text: no character in them moves a cursor, or ends a line of a log."""

Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID, pattern=TEXT)]
RULES = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@with_config(RULES)
class Document(TypedDict):
    """A candidate: its features, or an id that the table of the service knows."""

    doc_id: Id
    features: NotRequired[
        Annotated[
            list[float | None],
            FailFast(),
            Field(min_length=1, description="In the order of the model; null where one is missing"),
        ]
    ]


@with_config(RULES)
class Query(TypedDict):
    """Candidates to be ranked for a query."""

    query_id: Id
    documents: Annotated[list[Document], FailFast(), Field(min_length=1)]
    displayed: NotRequired[
        Annotated[int, Field(ge=1, le=10_000, description="How many of them the user will see")]
    ]
    client: NotRequired[
        Annotated[
            str,
            Field(max_length=LONGEST_ID, pattern=TEXT, description="Who asks, as far as known"),
        ]
    ]


@with_config(RULES)
class Queries(TypedDict):
    """Several queries at once."""

    queries: Annotated[list[Query], FailFast(), Field(min_length=1)]


@with_config(RULES)
class OneEvent(TypedDict):
    """Something that a user did with a document of an impression."""

    impression_id: Id
    doc_id: Id
    kind: NotRequired[Annotated[str, Field(min_length=1, max_length=LONGEST_KIND, pattern=TEXT)]]
    amount: NotRequired[Annotated[float, Field(ge=0, lt=LARGEST)]]
    event_id: NotRequired[
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=LONGEST_ID,
                pattern=TEXT,
                description="The same event sent again has the same one, and counts once "
                "for its impression, document and kind; without it, those have one event",
            ),
        ]
    ]


@with_config(RULES)
class Events(TypedDict):
    """Several events at once."""

    events: Annotated[list[OneEvent], FailFast(), Field(min_length=1)]


@with_config(RULES)
class Rollback(TypedDict):
    """Take the live version back."""

    to: NotRequired[
        Annotated[
            int,
            Field(ge=1, le=2**53, description="The version to go back to; without it, the last"),
        ]
    ]
    why: NotRequired[Annotated[str, Field(max_length=500, pattern=TEXT)]]


class Result(TypedDict):
    """A document where it stands."""

    doc_id: str
    score: float
    position: int


class Ranking(TypedDict):
    """An answer: the order, by which version of the model, and what events refer to."""

    impression_id: str
    version: int
    results: list[Result]
    swapped: Annotated[
        int, Field(description="The position exchanged with the first, to explore; 0 if none")
    ]


class Rankings(TypedDict):
    """Answers to several queries, in their order."""

    rankings: list[Ranking]


class Refusal(TypedDict):
    """An event that was not taken, by its place in the request."""

    index: int
    why: str


class Recorded(TypedDict):
    """What became of events; all that are not refused are on disk."""

    new: int
    again: int
    late: int
    refused: list[Refusal]


class Sentence(TypedDict):
    """Why a request was refused."""

    error: str


class State(TypedDict):
    """That a service lives, or is ready."""

    status: Literal["ok"]


Body = TypeVar("Body")


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """What checks bytes, made once for a kind of body."""
    return TypeAdapter(kind)


def read_body(kind: Callable[..., Body], body: bytes) -> Body:
    """What a request says; a DataError in one sentence where it is no such thing."""
    try:
        found: Body = adapter(kind).validate_json(body)
    except ValidationError as error:
        raise DataError(sentence_of(error)) from None
    refuse_names_twice(body, found)
    return found


def read_one_or_several(one: Any, several: Any, name: str, body: bytes) -> Any:
    """One thing, or a list of such things under `name`.

    Which of them is meant is guessed by looking for the name, and asked again where that fails: a
    document may be called as the name is.
    """
    guess = several if f'"{name}"'.encode() in body else one
    try:
        found = adapter(guess).validate_json(body)
    except ValidationError as error:
        try:
            parsed = from_json(body, allow_inf_nan=False)
        except ValueError:
            raise DataError(sentence_of(error)) from None
        meant = several if type(parsed) is dict and name in parsed else one
        if meant is guess:
            raise DataError(sentence_of(error)) from None
        return read_body(meant, body)
    refuse_names_twice(body, found)
    return found


def refuse_names_twice(body: bytes, found: Any) -> None:
    """Of a name that stands twice in an object the parser keeps one value.

    Without a backslash every quote begins or ends a string: there are more of them than what was
    understood has strings, where a value is gone.
    """
    if b"\\" in body:
        try:
            parse_json(body, bits=1024)
        except ValueError as error:
            raise DataError(f"the body is no JSON: {error}") from None
    elif body.count(b'"') != 2 * _strings(found):
        raise DataError("the body is no JSON: it gives a name twice")


def _strings(found: Any) -> int:
    """How many strings there are, names included, in what these types allow."""
    count = 0
    for value in found.values():
        count += 1
        if type(value) is str:
            count += 1
        elif type(value) is list and type(value[0]) is dict:
            count += sum(map(_strings, value))
    return count


def sentence_of(error: ValidationError) -> str:
    """What is wrong with a body: where, what was found, and what was expected."""
    problem = error.errors(include_url=False, include_context=True)[0]
    kind, where = problem["type"], place_of(problem["loc"])
    if kind == "json_invalid":
        return f"the body is no JSON: {problem.get('ctx', {}).get('error', 'it cannot be read')}"
    said = (
        problem["msg"].replace("Input should be", "expected").replace("Field required", "missing")
    )
    if kind == "missing":
        return f"{where}: it is missing"
    if kind == "extra_forbidden":
        return f"{where}: there is no such name here"
    if kind == "too_short":
        return f"{where}: the list is empty; expected one or more"
    if kind == "string_pattern_mismatch":
        said = "expected text without control characters"
    return f"{where}: {said[:1].lower()}{said[1:]}, not {shortened(problem['input'])}"


def place_of(loc: tuple[int | str, ...]) -> str:
    """A place in a body, as it would be written.

    >>> place_of(("documents", 3, "features", 0)), place_of(())
    ('documents[3].features[0]', 'the body')
    """
    text = "".join(f"[{part}]" if type(part) is int else f".{str(part)[:80]}" for part in loc)
    return text.removeprefix(".") or "the body"
