"""What a training is asked to do, as one value: built once, checked once, passed on whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any

import numpy as np

from dualrank.corrections.correction import Correction
from dualrank.corrections.losses import LOSSES
from dualrank.corrections.position_models import CONTEXTUAL, POSITION_MODELS
from dualrank.data.dataset import Dataset
from dualrank.data.scaling import KINDS
from dualrank.errors import SettingsError
from dualrank.learning.event_values import event_weights
from dualrank.learning.extracted_relevance import CLICK_MODEL, MIN_SESSIONS, model_of_label
from dualrank.learning.methods import METHODS, Method, method_of
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.kinds import kind_of_ranker
from dualrank.rankers.network import DNN
from dualrank.rankers.ranker import RankerSettings
from dualrank.settings import Suited, TrainingSettings, require_known

OPTIONS = ("propensity", "position_model", "context", "click_model", "min_sessions", "loss")
"""What some methods take, and others do not."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Which pieces learn from a log, with which settings; what contradicts itself is refused.

    `method` is the correction: `dla` learns the propensities with the ranker; `ipw` takes
    `propensity`; `naive` believes every click; `auto` trains several and adds them up as held-out
    clicks weigh them. `click-model` learns from the relevance that a `click_model` (`ubm`, unless
    given; `dbn:attraction` is one parameter of a model) extracts from lists that were displayed in
    at least `min_sessions` sessions (10). A correction of one's own is given as its class. A
    `ranker` may be named (`"trees"`), and is then as it comes.

    `validation` is a judged data set, by whose `settings.metric` the best ranker is kept, or the
    share of queries whose clicks are held out for that; 0 keeps the last ranker. With few queries
    the clicks of a tenth say little: prefer judged queries, or 0.

    `position_model` is the form of what `dla` learns about examination: `variables` (one per
    position, the default), a `network`, a `recurrent` one, or `contextual`: a curve for every value
    of the log's column `context`, such as a device. With a `propensity` that has such curves,
    `ipw` with the same `context` weighs every session by its own.

    `loss` is that of corrected labels: `softmax` (the default, the paper's), `pairwise` or
    `lambdarank`. What has a likelihood of its own takes none.

    `events` are weights of what users did, such as `{"click": 1, "purchase": 5}`: the method learns
    its propensity from clicks alone, and a ranker is then trained on what the events are worth.

    >>> Plan(method="naive").with_options(steps=500, scaling="log").suited.steps
    500
    """

    method: str | Method | type[Correction] = "dla"
    ranker: RankerSettings = field(default_factory=DNN)
    settings: TrainingSettings = field(default_factory=TrainingSettings)
    validation: Dataset | float = 0.1
    scaling: Annotated[str, "standard, minmax, log or none."] = "standard"
    propensity: Propensity | None = None
    position_model: Annotated[
        str | None, "What DLA learns about examination; contextual: a curve by context."
    ] = None
    context: str | None = None
    click_model: Annotated[
        str | None, "Whose relevance the method click-model learns from: ubm, dbn:attraction, …"
    ] = None
    min_sessions: Annotated[
        int | None, "Sessions that a list needs for the method click-model (10)."
    ] = None
    loss: Annotated[
        str | None, "The loss of corrected labels: softmax, pairwise or lambdarank."
    ] = None
    events: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.ranker, str):
            object.__setattr__(self, "ranker", kind_of_ranker(self.ranker)())
        method = self.way
        for option in OPTIONS:
            given = getattr(self, option) is not None
            if given and option not in method.takes | method.needs:
                raise SettingsError(f"method {method.name} takes no {_words(option)}{_who(option)}")
            if not given and option in method.needs:
                other = "; dla learns it from the clicks" if option == "propensity" else ""
                raise SettingsError(f"method {method.name} needs a {_words(option)}{other}")
        if unused := self._unused():
            raise SettingsError(
                f"a ranker of kind {self.ranker.kind} makes no use of {', '.join(unused)}"
            )
        object.__setattr__(self, "events", event_weights(self.events))
        self._check_curves()
        correction = method.correction
        if self.ranker.makes.at_once and (correction.learns or correction.slopes_only):
            lacking = "nothing is learned beside it" if correction.learns else "each has one weight"
            like = "as by" if correction.learns else "unlike by"
            raise SettingsError(
                f"a ranker of kind {self.ranker.kind} takes all clicks at once, so that {lacking} "
                f"{like} {method.name}; use method='ipw' or method='naive'"
            )
        if method.ground and (why := self.apart) is not None:
            raise SettingsError(f"method {method.name} makes one ranker of several: {why}")
        if not isinstance(self.validation, Dataset):
            if not 0 <= self.validation < 1:
                raise SettingsError(f"validation is a share between 0 and 1, not {self.validation}")
            if self.validation == 0 and method.name == "auto":
                raise SettingsError(
                    "method auto needs something to choose by: a share of queries to hold out, or "
                    "judged queries"
                )
        if self.scaling not in KINDS:
            known = ", ".join(KINDS)
            raise SettingsError(f"the scaling is {self.scaling!r}; expected one of {known}")
        if self.click_model is not None:
            model_of_label(self.click_model)
        if self.min_sessions is not None and self.min_sessions < 1:
            raise SettingsError(f"min_sessions is at least 1, not {self.min_sessions}")
        if self.loss not in (None, *LOSSES):
            raise SettingsError(f"unknown loss {self.loss!r}; known are {', '.join(LOSSES)}")
        if self.loss is not None and self.ranker.makes.at_once:
            raise SettingsError(
                f"a ranker of kind {self.ranker.kind} takes all clicks at once, with its own loss"
            )

    def _unused(self) -> list[str]:
        """What was asked for and would change nothing."""
        usual, ranker = TrainingSettings(), self.ranker.makes
        given = {name: getattr(self.settings, name) for name in sorted(ranker.unused)}
        asked = [
            f"{name}={value!r}" for name, value in given.items() if value != getattr(usual, name)
        ]
        if not ranker.scaled and self.scaling not in (Plan.scaling, "none"):
            asked.append(f"scaling={self.scaling!r}")
        return asked

    @property
    def apart(self) -> str | None:
        """Why rankers of this kind do not add up to one, if they do not."""
        try:
            self.ranker.build(1).plus(self.ranker.build(1), 1.0)
        except SettingsError as error:
            return str(error)
        return None

    def _check_curves(self) -> None:
        model, curves = self.position_model, self.propensity
        if model not in (None, CONTEXTUAL, *POSITION_MODELS):
            known = ", ".join((*POSITION_MODELS, CONTEXTUAL))
            raise SettingsError(f"unknown position model {model!r}; known are {known}")
        by_context = self.context is not None and curves is None
        if model is not None and (model == CONTEXTUAL) != by_context:
            raise SettingsError(
                "the contextual position model and the name of a context column go together"
            )
        if curves is not None and self.context not in (None, curves.context):
            raise SettingsError(
                f"the propensity has no curves by {self.context}"
                + (f", but by {curves.context}" if curves.context else "")
            )

    @property
    def way(self) -> Method:
        """The method that is meant."""
        return method_of(self.method)

    @property
    def suited(self) -> Suited:
        """The settings, with what was left open as it suits correction and ranker."""
        return self.settings.suited(self.way.correction.suits, self.ranker.makes.suits)

    @property
    def held_out(self) -> float:
        """The share of queries whose clicks are held out: none where there are judged ones."""
        return 0.0 if isinstance(self.validation, Dataset) else float(self.validation)

    def with_options(self, **options: Any) -> Plan:
        """The same plan with other options: those of a plan, or of its settings."""
        of_settings = [f.name for f in fields(TrainingSettings)]
        known = [f.name for f in fields(Plan)]
        require_known(options, [*known, *of_settings])
        plan = {name: value for name, value in options.items() if name in known}
        inner = {name: value for name, value in options.items() if name not in known}
        if inner:
            plan["settings"] = replace(plan.get("settings", self.settings), **inner)
        return replace(self, **plan)

    def for_method(self, method: str, propensity: Propensity | None = None) -> Plan:
        """The same plan for another method, without the options that it does not take."""
        takes = METHODS[method].takes | METHODS[method].needs
        changes: dict[str, Any] = {option: None for option in OPTIONS if option not in takes}
        if propensity is not None:
            changes["propensity"] = propensity
        return replace(self, method=method, **changes)

    def describe(self) -> dict[str, Any]:
        """Plain values that say all of it, for manifests and for telling runs apart."""
        described = {
            "method": self.way.name,
            "ranker": type(self.ranker).__name__,
            "ranker_settings": asdict(self.ranker),  # type: ignore[call-overload]
            "settings": {
                name: value
                for name, value in asdict(self.suited).items()
                if name not in self.ranker.makes.unused
            },
            "scaling": self.scaling,
            "validation": _validation_name(self.validation),
        }
        unless_given = {
            "position_model": "variables" if self.context is None else "contextual",
            "click_model": CLICK_MODEL,
            "min_sessions": MIN_SESSIONS,
            "loss": None if self.ranker.makes.at_once else "softmax",
        }
        for option in OPTIONS:
            value = getattr(self, option)
            if value is None and option in self.way.takes:
                value = unless_given.get(option)
            if isinstance(value, Propensity):
                value = json.loads(value.to_json())
            if value is not None:
                described[option] = value
        if self.events is not None:
            described["events"] = dict(self.events)
        return described


def _words(option: str) -> str:
    return option if option == "min_sessions" else option.replace("_", " ")


def _who(option: str) -> str:
    takers = [m.name for m in METHODS.values() if option in m.takes | m.needs and m.name != "auto"]
    *others, last = takers
    return f"; {', '.join(others)} and {last} do" if others else f"; {last} does"


def _validation_name(validation: Dataset | float) -> float | str:
    """What tells one validation from another: a share, or a digest of judged queries."""
    if not isinstance(validation, Dataset):
        return float(validation)
    digest = hashlib.sha256()
    for array in (validation.features, validation.offsets, validation.require_grades()):
        digest.update(np.ascontiguousarray(array).data)
    return f"judged queries {digest.hexdigest()[:12]}"
