"""The comparison of click models, as a table and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualrank.clicks.models.comparison import Score
from dualrank.report.figures import _new_figure, _title
from dualrank.report.theme import LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table
