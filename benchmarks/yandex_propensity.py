"""The adjacent chain of a log by several weights of its query–document pairs.

    python -m benchmarks.yandex yandex.parquet
    python -m benchmarks.yandex_propensity yandex.parquet

All weights are consistent where examination depends on the position alone and pairs do not. How
far they differ on a log says how far that is from true, or how few pairs carry the log.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.log.reader import read_log
from dualrank.propensity.bootstrap import with_intervals
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.harvesting import harvest


def chain_by_least(log: ClickLog, least: int) -> NDArray[np.float64]:
    """The adjacent chain over pairs seen `least` times at both, each weighing the lesser count."""
    cells = GroupedClicks.of(log).cells
    table = np.zeros((2, cells.document.max() + 1, cells.depth))
    table[:, cells.document, cells.position] = cells.impressions, cells.clicks
    shown, clicked = table
    curve = [1.0]
    for k in range(1, cells.depth):
        n, m = shown[:, k - 1], shown[:, k]
        both = np.minimum(n, m) >= least
        weight = np.minimum(n, m)[both]
        upper, lower = (clicked[both, k - 1] / n[both], clicked[both, k] / m[both])
        curve.append(curve[-1] * (weight @ lower) / (weight @ upper))
    return np.array(curve)


def main() -> int:
    """Print one chain per line."""
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    log = read_log(sys.argv[1])
    grouped = GroupedClicks.of(log)
    print(log)
    curves = {
        "harmonic": with_intervals(harvest(grouped, "adjacent"), grouped).examination,
        "equal": with_intervals(harvest(grouped, "adjacent", "equal"), grouped).examination,
        "the lesser count": chain_by_least(log, 1),
        "the lesser, from 5 on": chain_by_least(log, 5),
    }
    for name, curve in curves.items():
        print(f"{name:22}", *(f"{value:.2f}" for value in curve))
    return 0


if __name__ == "__main__":
    sys.exit(main())
