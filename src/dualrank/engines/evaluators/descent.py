"""How a tree scores many documents at once, whatever its nodes look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Node = dict[str, Any]
Values = NDArray[np.float32]
Leaf = Callable[[Node], float | None]
Split = Callable[[Node, NDArray[np.int64]], tuple[NDArray[np.bool_], Node, Node]]


def tree_values(root: Node, count: int, leaf: Leaf, split: Split) -> NDArray[np.float32]:
    """What a tree says of `count` documents.

    `leaf` gives the value of a node, or None where documents go on; `split` says which of some
    documents go to the first child that it returns, and not to the second.
    """
    values = np.zeros(count, np.float32)
    ahead = [(root, np.arange(count))]
    while ahead:
        node, rows = ahead.pop()
        value = leaf(node)
        if value is not None:
            values[rows] = value
        elif len(rows):
            goes, first, second = split(node, rows)
            ahead += [(first, rows[goes]), (second, rows[~goes])]
    return values


def columns_of(names: list[str], features: Values) -> dict[str, Values]:
    """Every feature by its name."""
    return {name: features[:, column] for column, name in enumerate(names)}
