"""Which of several trained models is the best: clicks or grades that none was trained on decide.

Correcting for position can lose to not correcting at all, and the training loss does not show it.
So a correction is taken only where it is clearly ahead of the naive ranker (see `click_check`),
judged by how users of the log read. Judged queries decide instead where there are some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.dependence import Dependence
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.evaluation.click_check import CLEAR, ClickCheck, Lead
from dualrank.evaluation.evaluator import Evaluator
from dualrank.learning.event_values import values_by_list
from dualrank.learning.material import Logged
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.learning.whole_source import WholeSource

NAIVE = "naive"

Scores = NDArray[np.floating]


@dataclass(frozen=True)
class Choice:
    """What was chosen among the candidates, why, and how far each was ahead of the naive ranker."""

    chosen: str
    why: str
    leads: dict[str, Lead] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    """How much the scores of each candidate count, where they are added up."""

    def to_dict(self) -> dict[str, object]:
        """Plain values, for the manifest."""
        return {
            "chosen": self.chosen,
            "why": self.why,
            "leads": {name: asdict(lead) for name, lead in self.leads.items()},
            **({"weights": self.weights} if self.weights else {}),
        }


def choose_by_clicks(
    candidates: Mapping[str, Scores],
    held_out: ClickLog,
    *,
    reads: bool = False,
    values: Scores | None = None,
) -> Choice:
    """Choose by clicks that no candidate was trained on; one of the candidates is `naive`.

    `reads` says that users read from the top and stop, so that clicks tell what was examined.
    `values` by list and position are what weighted events are worth, in the place of clicks.
    """
    check = ClickCheck(held_out, reads=reads, values=values)
    seen = "clicks" if values is None else "events"
    leads = {
        name: check.lead(scores, over=candidates[NAIVE])
        for name, scores in candidates.items()
        if name != NAIVE
    }
    known = "what was read" if reads else "position"
    clear = {name: lead.gain for name, lead in leads.items() if lead.is_clear}
    if clear:
        chosen = max(clear, key=lambda name: clear[name])
        why = (
            f"{chosen} predicts the held-out {seen} of {leads[chosen].queries} queries better than "
            f"naive by {leads[chosen].in_errors:.1f} standard errors, {known} accounted for"
        )
        return Choice(chosen, why, leads)
    listed = ", ".join(f"{name} {lead.in_errors:+.1f}" for name, lead in leads.items())
    why = (
        f"no correction is clearly ahead of naive on held-out {seen} (in standard errors: "
        f"{listed}; {CLEAR:g} were needed)"
    )
    return Choice(NAIVE, why, leads)


def choose_by_grades(candidates: Mapping[str, Scores], judged: Dataset, metric: str) -> Choice:
    """Choose by the mean of a metric over judged queries; the scores are those of `judged`."""
    evaluator = Evaluator(judged, [metric])
    per_query = {name: evaluator.per_query(scores)[metric] for name, scores in candidates.items()}
    leads = {}
    for name, values in per_query.items():
        difference = values - per_query[NAIVE]
        error = float(difference.std(ddof=1) / np.sqrt(len(difference)))
        if name != NAIVE:
            leads[name] = Lead(float(difference.mean()), error, len(difference), 0)
    means = {name: float(values.mean()) for name, values in per_query.items()}
    chosen = max(means, key=lambda name: means[name])
    listed = ", ".join(f"{name} {mean:.4f}" for name, mean in means.items())
    return Choice(chosen, f"{metric} on {len(judged)} judged queries: {listed}", leads)


def choose(
    models: Mapping[str, Model], log: ClickLog | Logged, dataset: Dataset, plan: Plan
) -> Choice:
    """Choose among models that were trained by the same plan but for its method.

    One of them is `naive`. An error says why that cannot be decided, where it cannot.
    """
    if isinstance(plan.validation, Dataset):
        judged = plan.validation
        scores = {name: model.predict(judged) for name, model in models.items()}
        return choose_by_grades(scores, judged, plan.settings.metric)
    source = WholeSource.of(log, dataset, plan) if isinstance(log, ClickLog) else log
    rest, held_out = source.sample.rest, source.sample.held_out
    if held_out is None:
        raise DataError("nothing was held out to compare the models by")
    scores = {name: model.predict(dataset) for name, model in models.items()}
    if plan.events is not None:
        values = values_by_list(held_out, plan.events)
        return choose_by_clicks(scores, held_out, values=values)
    reads = Dependence.of(rest).reads_from_the_top
    return choose_by_clicks(scores, held_out, reads=reads)
