"""Packages that not everybody needs, and the sentence that names the extra which brings them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Literal

from dualrank.errors import SettingsError

Extra = Literal["charts", "chinese", "onnx", "pages", "spark", "tensorboard", "trees"]

_WANTED_BY: dict[Extra, str] = {
    "charts": "charts need",
    "chinese": "cutting Chinese into words needs",
    "onnx": "ONNX needs",
    "pages": "reading web pages needs",
    "spark": "the engine spark needs",
    "tensorboard": "writing for TensorBoard needs",
    "trees": "growing trees needs",
}


def require(extra: Extra, module: str) -> ModuleType:
    """A module that comes with an extra; where it is not installed, say how to get it.

    >>> require("charts", "no_such_module")
    Traceback (most recent call last):
    dualrank.errors.SettingsError: charts need packages that are not installed \
(No module named 'no_such_module'): pip install 'dualrank[charts]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise SettingsError(
            f"{_WANTED_BY[extra]} packages that are not installed ({error}): "
            f"pip install 'dualrank[{extra}]'"
        ) from error
