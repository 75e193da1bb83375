"""Which correction, if any: candidates are trained, and clicks that none was trained on decide.

Correcting for position can lose to not correcting at all. Where the logging ranker was strong, or
features miss part of relevance, the learned propensities are confounded; where sessions are few,
large weights amplify noise. Neither shows in the training loss. So `auto` trains the naive ranker
and one ranker per correction that the log allows, and takes the correction with the largest lead
over the naive ranker, provided that the lead is clear (see `click_check`); without one it stays
naive. (The step at which each candidate was best is chosen by the same clicks, which flatters all
of them alike.) It also stays naive where a click mostly ends the session: then what is seen depends
on the documents above, no weight by position is right, and the check, which presumes such weights,
cannot tell. Judged queries decide instead where there are some.
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
from dualrank.propensity.estimators import estimate
from dualrank.propensity.propensity import Propensity

NAIVE = "naive"
# A harvested weight that may as well be twice as large or half of it corrects nothing.
WIDEST_INTERVAL = 4.0

Scores = NDArray[np.floating]


@dataclass(frozen=True)
class Choice:
    """What was chosen among the candidates, why, and how far each was ahead of the naive ranker."""

    chosen: str
    why: str
    leads: dict[str, Lead] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Plain values, for the manifest."""
        return {
            "chosen": self.chosen,
            "why": self.why,
            "leads": {name: asdict(lead) for name, lead in self.leads.items()},
        }


def doubt(log: ClickLog) -> str | None:
    """Why no weight by position can be right for these clicks, if there is a reason."""
    found = Dependence.of(log)
    if not found.ends_sessions:
        return None
    first, further = found.after_the_first, found.further_down
    return (
        f"sessions click a second time {first.value:.2f} times as often after a click on the first "
        f"result, and {further.value:.2f} times as often after one further down, as clicks that "
        "depend on the position alone would"
    )


def choose_by_clicks(
    candidates: Mapping[str, Scores], held_out: ClickLog, doubts: str | None = None
) -> Choice:
    """Choose by clicks that no candidate was trained on; one of the candidates is `naive`.

    With `doubts` about weights by position the naive ranker is taken.
    """
    check = ClickCheck(held_out)
    leads = {
        name: check.lead(scores, over=candidates[NAIVE])
        for name, scores in candidates.items()
        if name != NAIVE
    }
    if doubts is not None:
        return Choice(NAIVE, doubts, leads)
    clear = {name: lead.gain for name, lead in leads.items() if lead.is_clear}
    if clear:
        chosen = max(clear, key=lambda name: clear[name])
        why = (
            f"{chosen} predicts the held-out clicks of {leads[chosen].queries} queries better than "
            f"naive by {leads[chosen].in_errors:.1f} standard errors, position accounted for"
        )
        return Choice(chosen, why, leads)
    told = ", ".join(f"{name} {lead.in_errors:+.1f}" for name, lead in leads.items())
    why = (
        f"no correction is clearly ahead of naive on held-out clicks (in standard errors: {told}; "
        f"{CLEAR:g} were needed)"
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
    told = ", ".join(f"{name} {mean:.4f}" for name, mean in means.items())
    return Choice(chosen, f"{metric} on {len(judged)} judged queries: {told}", leads)


def harvested_propensity(log: ClickLog, seed: int = 0) -> Propensity | str:
    """The harvested curve, if it covers every position and is sharp enough; else why not."""
    try:
        curve = estimate(log, "harvest-all-pairs", seed=seed)
    except DataError as error:
        return str(error)
    if curve.depth < log.lists.depth:
        return str(curve.details.get("ends", f"the curve ends at position {curve.depth}"))
    if curve.low is None or curve.high is None:
        return "the harvested curve has no intervals"
    widths = curve.high / curve.low
    widest = int(np.argmax(widths))
    if not widths[widest] <= WIDEST_INTERVAL:
        return (
            f"the harvested examination of position {widest + 1} is known only between "
            f"{curve.low[widest]:.2g} and {curve.high[widest]:.2g}"
        )
    return curve
