"""All rankers, by the kind that manifests and the command line know them by."""

from __future__ import annotations

from dualrank.rankers.network import DNN, Linear
from dualrank.rankers.ranker import RankerSettings
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.rankers.trees import Trees

RANKERS: dict[str, type[RankerSettings]] = {
    each.kind: each for each in (DNN, Linear, Trees, RankingSVM)
}
