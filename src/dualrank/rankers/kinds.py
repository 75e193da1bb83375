"""All rankers, by the kind that manifests and the command line know them by."""

from __future__ import annotations

from dualrank.errors import SettingsError
from dualrank.rankers.network import DNN, Linear
from dualrank.rankers.ranker import RankerSettings
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.rankers.trees import Trees

RANKERS: dict[str, type[RankerSettings]] = {
    each.kind: each for each in (DNN, Linear, Trees, RankingSVM)
}


def kind_of_ranker(name: str) -> type[RankerSettings]:
    """The kind of this name."""
    if name not in RANKERS:
        raise SettingsError(f"unknown ranker {name!r}; known are {', '.join(RANKERS)}")
    return RANKERS[name]
