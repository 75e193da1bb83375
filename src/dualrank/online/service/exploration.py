"""Lists that show another order in some sessions, so that examination can be measured.

A single exchange of the first result with the one at position k is what `propensity/pair_swaps.py`
reads (Joachims, Swaminathan and Schnabel, WSDM 2017, section 5.3): a list that is shown both ways
tells how much more often the first position is looked at. It costs little, since all but two
results stay; `dualrank plan-swaps` says how much, and for how long it is needed.
"""

from __future__ import annotations

from random import Random

NOT_SWAPPED = 0


class Exploration:
    """Exchanges the first of the displayed with another one, in a share of all lists.

    Without a `seed` every server, and every start of one, has exchanges of its own.

    >>> always = Exploration(1.0, seed=0)
    >>> sorted({always.position(displayed=3) for _ in range(50)})
    [2, 3]
    >>> Exploration(0.0).position(displayed=3)
    0
    """

    def __init__(self, share: float, seed: int | None = None) -> None:
        self.share = share
        self._random = Random(seed)

    def position(self, displayed: int) -> int:
        """The position whose result stands first this time; 0 where nothing is exchanged."""
        if self.share == 0.0 or displayed < 2 or self._random.random() >= self.share:
            return NOT_SWAPPED
        return self._random.randint(2, displayed)
