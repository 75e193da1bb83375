"""Packages that not everybody needs, and the sentence that says how to get them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Literal

from dualrank.errors import SettingsError

Extra = Literal[
    "charts", "chinese", "onnx", "pages", "redis", "serve", "spark", "tensorboard", "trees"
]

# Who wants an extra, and the packages that it brings, as `pip install` takes them.
_EXTRAS: dict[Extra, tuple[str, str]] = {
    "charts": ("charts need", "matplotlib"),
    "chinese": ("cutting Chinese into words needs", "rjieba"),
    "onnx": ("ONNX needs", "onnx onnxruntime"),
    "pages": ("reading web pages needs", "pystemmer selectolax tantivy warcio"),
    "redis": ("events on Redis need", "redis"),
    "serve": ("serving needs", "httptools prometheus-client starlette uvicorn uvloop"),
    "spark": ("the engine spark needs", "pyspark"),
    "tensorboard": ("writing for TensorBoard needs", "tensorboard"),
    "trees": ("growing trees needs", "lightgbm"),
}


def require(extra: Extra, module: str) -> ModuleType:
    """A module that comes with an extra; where it is not installed, say how to get it.

    Packages and extra are both named: pip knows the extra of whatever dualrank is installed, from
    wherever it came; the packages are for those who install by other means.

    >>> require("charts", "no_such_module")
    Traceback (most recent call last):
    dualrank.errors.SettingsError: charts need packages that are not installed \
(No module named 'no_such_module'): pip install matplotlib, or pip install 'dualrank[charts]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        wants, _ = _EXTRAS[extra]
        raise SettingsError(
            f"{wants} packages that are not installed ({error}): {install_lines(extra)}"
        ) from error


def install_lines(extra: Extra) -> str:
    """What brings an extra, in both forms.

    >>> install_lines("trees")
    "pip install lightgbm, or pip install 'dualrank[trees]'"
    """
    return f"pip install {_EXTRAS[extra][1]}, or pip install 'dualrank[{extra}]'"
