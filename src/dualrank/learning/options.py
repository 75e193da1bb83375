"""What a training is asked to do, checked before any data is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dualrank.clicks.models.registry import click_model
from dualrank.corrections.position_models import POSITION_MODELS, PositionModelName
from dualrank.data.dataset import Dataset
from dualrank.data.scaling import KINDS
from dualrank.errors import SettingsError
from dualrank.learning.extracted_relevance import MIN_SESSIONS
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN, Linear
from dualrank.rankers.ranking_svm import RankingSVM

Method = Literal["auto", "dla", "ipw", "naive", "click-model"]
METHODS: tuple[Method, ...] = ("auto", "dla", "ipw", "naive", "click-model")


@dataclass(frozen=True)
class Options:
    """The options of `fit` that only make sense together."""

    method: Method
    ranker: DNN | Linear | RankingSVM
    position_model: str | None = None
    context: str | None = None
    click_model: str | None = None
    min_sessions: int | None = None

    def check(
        self,
        propensity: Propensity | None = None,
        validation: Dataset | float = 0.1,
        scaling: str = "standard",
    ) -> None:
        """Refuse what contradicts itself."""
        method = self.method
        if method not in METHODS:
            raise SettingsError(f"unknown method {method!r}; known are {', '.join(METHODS)}")
        if method == "ipw" and propensity is None:
            raise SettingsError("method ipw needs a propensity; dla learns it from the clicks")
        if method != "ipw" and propensity is not None:
            raise SettingsError(f"method {method} takes no propensity; ipw does")
        if propensity is not None and self.context not in (None, propensity.context):
            raise SettingsError(
                f"the propensity has no curves by {self.context}"
                + (f", but by {propensity.context}" if propensity.context else "")
            )
        if isinstance(self.ranker, RankingSVM):
            self._check_svm()
        if not isinstance(validation, Dataset):
            if not 0 <= validation < 1:
                raise SettingsError(f"validation is a share between 0 and 1, not {validation}")
            if validation == 0 and method == "auto":
                raise SettingsError(
                    "method auto needs something to choose by: a share of queries to hold out, or "
                    "judged queries"
                )
        if scaling not in KINDS:
            raise SettingsError(f"the scaling is {scaling!r}; expected one of {', '.join(KINDS)}")
        if self.extraction is not None:
            click_model(self.extraction[0])
        _ = self.position_model_name

    def _check_svm(self) -> None:
        if self.method == "dla":
            raise SettingsError("the Ranking SVM has no dual learning; use method ipw or naive")
        if self.context is not None:
            raise SettingsError("the Ranking SVM knows one curve, so it takes no context")
        if self.method == "click-model":
            raise SettingsError("the Ranking SVM learns from clicks, not from extracted relevance")

    @property
    def position_model_name(self) -> PositionModelName | None:
        """The position model that is meant; a context means the contextual one."""
        if self.method not in ("dla", "auto"):
            if self.position_model is not None:
                raise SettingsError(
                    f"method {self.method} learns no examination, so it takes no position model"
                )
            if self.context is not None and self.method != "ipw":
                raise SettingsError(f"method {self.method} has no curves, so it takes no context")
            return None
        chosen = self.position_model or ("variables" if self.context is None else "contextual")
        for known in POSITION_MODELS:
            if chosen == known:
                if (self.context is None) == (known == "contextual"):
                    raise SettingsError(
                        "the contextual position model and the name of a context column go together"
                    )
                return known
        raise SettingsError(
            f"unknown position model {chosen!r}; known are {', '.join(POSITION_MODELS)}"
        )

    @property
    def extraction(self) -> tuple[str, int] | None:
        """The click model to extract relevance with, and how many sessions a list must have."""
        if self.method == "click-model":
            least = MIN_SESSIONS if self.min_sessions is None else self.min_sessions
            if least < 1:
                raise SettingsError(f"min_sessions is at least 1, not {least}")
            return self.click_model or "dbn", least
        if self.click_model is not None or self.min_sessions is not None:
            raise SettingsError(
                f"method {self.method} extracts no relevance, so it takes no click model or "
                "min_sessions"
            )
        return None
