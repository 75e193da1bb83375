"""All click models, by name."""

from __future__ import annotations

from pathlib import Path

from dualrank.clicks.models.cascade import Cascade
from dualrank.clicks.models.ccm import ClickChain
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.ctr import (
    DocumentClickThrough,
    RandomClickThrough,
    RankClickThrough,
)
from dualrank.clicks.models.dbn import DynamicBayesian
from dualrank.clicks.models.dcm import DependentClick, ExactDependentClick
from dualrank.clicks.models.em import EM, Prior
from dualrank.clicks.models.files import read_fitted
from dualrank.clicks.models.pbm import PositionBased
from dualrank.clicks.models.pbm_trust import TrustBias
from dualrank.clicks.models.sdbn import ExactSimplifiedBayesian, SimplifiedBayesian
from dualrank.clicks.models.ubm import UserBrowsing
from dualrank.errors import DataError, SettingsError

MODELS: dict[str, type[ClickModel]] = {
    model.name: model
    for model in (
        RandomClickThrough,
        RankClickThrough,
        DocumentClickThrough,
        PositionBased,
        TrustBias,
        Cascade,
        DependentClick,
        ExactDependentClick,
        ClickChain,
        UserBrowsing,
        SimplifiedBayesian,
        ExactSimplifiedBayesian,
        DynamicBayesian,
    )
}


def click_model(name: str, prior: Prior | None = None, em: EM | None = None) -> ClickModel:
    """An unfitted model by name."""
    if name not in MODELS:
        raise SettingsError(f"unknown click model {name!r}; known are {', '.join(MODELS)}")
    return MODELS[name](prior, em)


def load_click_model(path: str | Path) -> ClickModel:
    """A fitted model from a file that `save` wrote."""
    name, fitted = read_fitted(Path(path))
    if name not in MODELS:
        raise DataError(f"{path}: unknown click model {name!r}; known are {', '.join(MODELS)}")
    model = MODELS[name]()
    model.fitted = fitted
    return model
