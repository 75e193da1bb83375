"""How the reference shows our docstrings and signatures."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from sphinx.application import Sphinx


def mark_formulas(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Formulas stand indented: put the `::` before them that reStructuredText wants."""
    marked: list[str] = []
    for line in lines:
        starts = line.startswith("    ") and len(marked) > 1 and not marked[-1]
        if starts and not marked[-2].startswith(" "):
            marked += ["::", ""]
        marked.append(line)
    lines[:] = marked


def as_written(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """The fields of a class with their types as the source has them, which are shorter."""
    if what != "class" or not inspect.isclass(obj):
        return None
    shown = []
    for field in inspect.signature(obj).parameters.values():
        kind = "*" if field.kind is field.VAR_POSITIONAL else ""
        kind = "**" if field.kind is field.VAR_KEYWORD else kind
        default = "" if field.default is field.empty else f" = {_value(field.default)}"
        is_typed = field.annotation is not field.empty
        of_type = f": {_plain(str(field.annotation))}" if is_typed else ""
        shown.append(f"{kind}{field.name}{of_type}{default}")
    return f"({', '.join(shown)})", ""


def _value(default: object) -> str:
    try:
        ast.parse(repr(default), mode="eval")
    except SyntaxError:  # such as the factory of a dictionary
        return "..."
    return repr(default)


def _plain(annotation: str) -> str:
    """A type without the help that the command line takes from it."""
    node = ast.parse(annotation, mode="eval").body
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated":
        assert isinstance(node.slice, ast.Tuple)
        return ast.unparse(node.slice.elts[0])
    return annotation


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx asks for this."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", mark_formulas)
    app.connect("autodoc-process-signature", as_written)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
