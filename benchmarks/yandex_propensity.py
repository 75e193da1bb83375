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
from dualrank.data.log.read_log import read_log
from dualrank.propensity.bootstrap import with_intervals
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.harvesting import harvest


def chain_by_least(log: ClickLog, least: int) -> NDArray[np.float64]:
    """The adjacent chain over pairs seen `least` times at both, each weighing the lesser count."""
    shown, clicked = pairs_by_position(log)
    curve = [1.0]
    for k in range(1, shown.shape[1]):
        n, m = shown[:, k - 1], shown[:, k]
        both = np.minimum(n, m) >= least
        weight = np.minimum(n, m)[both]
        upper, lower = (clicked[both, k - 1] / n[both], clicked[both, k] / m[both])
        curve.append(curve[-1] * (weight @ lower) / (weight @ upper))
    return np.array(curve)


def rare_pairs(log: ClickLog, least: int) -> tuple[float, float]:
    """The share of pairs seen less often at one of two neighbouring positions, and their weight."""
    shown, _ = pairs_by_position(log)
    lesser = np.minimum(shown[:, 1:], shown[:, :-1])
    seen = lesser[lesser > 0]
    return float((seen < least).mean()), float(seen[seen < least].sum() / seen.sum())


def pairs_by_position(log: ClickLog) -> NDArray[np.float64]:
    """Impressions and clicks of every pair at every position."""
    cells = GroupedClicks.of(log).cells
    table = np.zeros((2, cells.document.max() + 1, cells.depth))
    table[:, cells.document, cells.position] = cells.impressions, cells.clicks
    return table


def main() -> int:
    """Print one chain per line."""
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    log = read_log(sys.argv[1])
    grouped = GroupedClicks.of(log)
    print(log)
    equal = with_intervals(harvest(grouped, "adjacent", "equal"), grouped)
    curves = {
        "harmonic": with_intervals(harvest(grouped, "adjacent"), grouped).examination,
        "equal": equal.examination,
        "  from": equal.low,
        "  to": equal.high,
        "the lesser count": chain_by_least(log, 1),
        "the lesser, from 5 on": chain_by_least(log, 5),
    }
    for name, curve in curves.items():
        if curve is not None:
            print(f"{name:22}", *(f"{value:.2f}" for value in curve))
    rare, weight = rare_pairs(log, 5)
    print(f"pairs seen fewer than 5 times at one of two neighbours: {rare:.0%}")
    print(f"what they weigh by the lesser count: {weight:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
