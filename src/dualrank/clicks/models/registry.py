"""All click models, by name; a new one is a file and a line in `MODELS`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

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
from dualrank.clicks.models.files import read_fitted, require_probabilities
from dualrank.clicks.models.pbm import PositionBased
from dualrank.clicks.models.pbm_trust import TrustBias
from dualrank.clicks.models.sdbn import ExactSimplifiedBayesian, SimplifiedBayesian
from dualrank.clicks.models.ubm import UserBrowsing
from dualrank.data.lists import RankedLists
from dualrank.errors import DataError, SettingsError
from dualrank.sentences import shortened

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


def click_model(
    model: str | type[ClickModel], prior: Prior | None = None, em: EM | None = None
) -> ClickModel:
    """An unfitted model by name, or of a class of your own.

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> pbm = dr.click_model("pbm").fit(log)
    >>> ranks = dr.click_model("rank-ctr").fit(log)
    >>> pbm.log_likelihood(log) > ranks.log_likelihood(log)
    True
    """
    if not isinstance(model, str):
        return model(prior, em)
    if model not in MODELS:
        raise SettingsError(f"unknown click model {model!r}; known are {', '.join(MODELS)}")
    return MODELS[model](prior, em)


def load_click_model(path: str | Path, *own: type[ClickModel]) -> ClickModel:
    """A fitted model from a file that `save` wrote; it may be of one of your `own` classes.

    >>> from tempfile import TemporaryDirectory
    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> model = dr.click_model("ubm").fit(log)
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/ubm.parquet")
    ...     loaded = dr.load_click_model(f"{folder}/ubm.parquet")
    >>> loaded.log_likelihood(log) == model.log_likelihood(log)
    True
    """
    name, fitted = read_fitted(Path(path))
    known = MODELS | {model.name: model for model in own}
    if name not in known:
        raise DataError(
            f"{path}: unknown click model {shortened(name)}; known are {', '.join(known)}"
        )
    loaded = known[name]()
    loaded.fitted = fitted
    try:
        if name in MODELS:
            for parameter, values in fitted.shared.items():
                require_probabilities(parameter, values)
        # What belongs to another model ends here, and not where somebody relies on it.
        lists = RankedLists(np.zeros((1, fitted.depth), np.int32), np.zeros(1, np.int32))
        loaded.click_probabilities(lists)
        loaded.relevance_of_pairs()
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not the parameters of {name} ({error!r:.200})") from error
    return loaded
