"""`auto`: several rankers are trained, and one is made of those that clicks speak for.

Which corrections are right depends on the log, and no training loss shows it: where the logging
ranker was strong, or knew what features do not tell, a learned curve is confounded; where sessions
are few, corrections learn noise; where a click ends the session, no weight by position is right. So
`auto` trains the naive ranker, a copy of the logging ranker, and the corrections for how users of
this log read; held-out clicks say how much each of them counts (see `combination`), and their
scores are added up in one ranker.

A ranker that takes all clicks at once learns no correction beside it, some rankers do not add up,
and judged queries need no detour over clicks: then the best candidate is taken as it is (see
`choice`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.dependence import Dependence
from dualrank.data.click_log import PERIOD, ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists, top_lists
from dualrank.errors import DataError
from dualrank.evaluation.click_check import CLEAR, ClickCheck, Lead
from dualrank.learning.choice import NAIVE, Choice, choose
from dualrank.learning.combination import HeldOut, add_up, context_lead, weigh
from dualrank.learning.feedback import require_comparisons
from dualrank.learning.logging_scores import Ground
from dualrank.learning.loop import Progress, Watch, part_of
from dualrank.learning.material import Logged
from dualrank.learning.methods import METHODS
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.learning.score_checks import check_trained
from dualrank.learning.train_one import advice_for, train_one
from dualrank.learning.whole_source import WholeSource
from dualrank.propensity.estimators import estimate
from dualrank.propensity.propensity import Propensity
from dualrank.sentences import counted

IMITATION = "imitation"
BY_POSITION = (NAIVE, IMITATION, "grounded", "likelihood")
BY_READING = (NAIVE, IMITATION, "grounded-stopping", "stopping")
"""What is trained, where examination depends on the position, and where users read and stop."""

FEW_CLICKS = 10_000
"""With so many clicks, the prior is as near to the ranker that stands on the logging ranker alone
as to its even sum with the naive ranker."""
# A harvested weight that may as well be twice as large or half of it corrects nothing.
WIDEST_INTERVAL = 4.0
MOST_CONTEXTS = 20


def fit_best(
    log: ClickLog | Logged,
    dataset: Dataset,
    plan: Plan,
    *,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> tuple[Model, dict[str, Model]]:
    """Train the candidates: the ranker that is made of them, and each by its method."""
    source = WholeSource.of(log, dataset, plan) if isinstance(log, ClickLog) else log
    require_comparisons(source.sample.lists)
    work = _Candidates(source, plan, checkpoint, progress, watch)
    if plan.ranker.makes.at_once or plan.apart or isinstance(plan.validation, Dataset):
        return work.choose()
    return work.combine()


class _Candidates:
    """The models that are trained on one log, one after the other."""

    def __init__(
        self,
        source: Logged,
        plan: Plan,
        checkpoint: Path | None,
        progress: Progress | None,
        watch: Watch | None,
    ) -> None:
        self.source, self.sample, self.plan = source, source.sample, plan
        self.checkpoint, self.progress, self.watch = checkpoint, progress, watch
        self.models: dict[str, Model] = {}

    def train(self, name: str, plan: Plan, count: int) -> None:
        """Train one of `count`."""
        path = self.checkpoint
        self.models[name] = train_one(
            self.source,
            plan,
            ground=self.models.get(IMITATION),
            checkpoint=path and path.with_stem(f"{path.stem}-{name}"),
            progress=part_of(self.progress, len(self.models), count),
            watch=self.watch,
        )

    def choose(self) -> tuple[Model, dict[str, Model]]:
        """One of them."""
        plans = {NAIVE: self.plan.for_method(NAIVE)}
        why_not = None
        if self.plan.ranker.makes.at_once:
            harvested = harvested_propensity(self.sample.rest, self.plan.settings.seed)
            if isinstance(harvested, Propensity):
                plans["ipw"] = replace(self.plan.for_method("ipw", harvested), context=None)
            else:
                why_not = harvested
        else:
            reads = Dependence.of(self.sample.rest).reads_from_the_top
            for name in BY_READING if reads else BY_POSITION:
                if METHODS[name].ground is None or not self.plan.apart:
                    plans[name] = self.plan.for_method(name)
        for name, plan in plans.items():
            self.train(name, plan, len(plans))
        choice = choose(self.models, self.source, self.sample.dataset, self.plan)
        return self.described(self.models[choice.chosen], choice, not_harvested=why_not)

    def combine(self) -> tuple[Model, dict[str, Model]]:
        """All of them, as clicks weigh them."""
        held_out, plan = self.sample.held_out, self.plan
        if held_out is None:
            raise DataError("nothing was held out to weigh the candidates by")
        reads = Dependence.of(self.sample.rest).reads_from_the_top
        check = ClickCheck(held_out, reads=reads)
        names = BY_READING if reads else BY_POSITION
        self.train(NAIVE, plan.for_method(NAIVE), len(names))
        clicks = HeldOut(held_out, self.sample.dataset, None, reads)
        naive = clicks.predict(self.models[NAIVE])
        found = None if plan.context else telling_context(held_out, naive, reads)
        if found is not None:
            plan = replace(plan, context=found, position_model=None)
        for name in names[1:]:
            self.train(name, plan.for_method(name), len(names))
        ground = Ground.of(self.models[IMITATION], self.sample.lists, self.sample.dataset)
        clicks = replace(clicks, ground=ground, context=plan.context)
        weighed = {name: self.models[name] for name in (*names[2:], NAIVE)}
        weights = weigh(weighed, clicks, prior_shares(names[2], self.source.clicks))
        model = add_up(self.models, weights)
        scores = {
            name: clicks.predict(each) for name, each in {"auto": model, **self.models}.items()
        }
        leads = {
            name: check.lead(each, over=naive) for name, each in scores.items() if name != NAIVE
        }
        unseen = never_displayed(scores["auto"], held_out.lists, self.sample.dataset)
        why = f"{_why(leads, reads, found)}. {_unseen(unseen, self.sample.lists.depth)}"
        choice = Choice(_in_words(weights), why, leads, weights)
        return self.described(model, choice)

    def described(
        self, model: Model, choice: Choice, **more: str | None
    ) -> tuple[Model, dict[str, Model]]:
        """The model with what the manifest says of the choice, and all candidates."""
        why = choice.to_dict() | {name: value for name, value in more.items() if value}
        training = {**model.training, "method": "auto", "auto": why}
        training.pop("warnings", None)
        lists, advice = self.sample.lists, advice_for(self.plan)
        warnings = check_trained(model.ranker, model.scaler, self.sample.dataset, lists, advice)
        if warnings:
            training["warnings"] = warnings
        return replace(model, training=training), self.models


def telling_context(held_out: ClickLog, scores: NDArray[np.floating], reads: bool) -> str | None:
    """The column of the log whose values clearly differ in what position does, most of all."""
    leads = {}
    for name, column in held_out.columns.items():
        if name != PERIOD and 1 < len(np.unique(column.codes)) <= MOST_CONTEXTS:
            leads[name] = context_lead(held_out, scores, name, reads)
    clear = {name: lead.gain for name, lead in leads.items() if lead.is_clear}
    return max(clear, key=lambda name: clear[name]) if clear else None


def prior_shares(grounded: str, clicks: int) -> dict[str, float]:
    """What candidates count before any held-out click has spoken.

    A few clicks teach less than the logging ranker knew; with more of them, rankers that err in
    different ways are better together.
    """
    naive = 0.5 * clicks / (clicks + FEW_CLICKS)
    return {grounded: 1 - naive, NAIVE: naive}


def never_displayed(scores: NDArray[np.floating], lists: RankedLists, dataset: Dataset) -> float:
    """The share of what a ranker would display for the logged queries that no list displayed."""
    ever = np.zeros(dataset.document_count, dtype=bool)
    ever[lists.documents[lists.mask]] = True
    top = top_lists(dataset, scores, lists.depth)
    logged = np.isin(top.queries, lists.queries)
    return 1.0 - float(ever[top.documents[logged][top.mask[logged]]].mean())


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


def _unseen(share: float, depth: int) -> str:
    """What clicks could not have told."""
    told = "Clicks cannot tell whether what attracts them also satisfies"
    if not share:
        return told
    return (
        f"{told}, nor what the {share:.0%} of its top {depth} are worth that were never displayed"
    )


def _in_words(weights: Mapping[str, float]) -> str:
    return " + ".join(weights)


def _why(leads: Mapping[str, Lead], reads: bool, context: str | None) -> str:
    lead = leads["auto"]
    users = (
        "users read from the top and stop after clicks"
        if reads
        else "examination depends on the position"
    )
    ahead = f"{abs(lead.in_errors):.1f} standard errors {'better' if lead.gain >= 0 else 'worse'}"
    luck = "" if abs(lead.in_errors) > CLEAR else f", which may be luck (above {CLEAR:g} it is not)"
    told_apart = f", with a curve for every {context}" if context else ""
    return (
        f"it predicts the held-out clicks of {counted(lead.queries, 'queries')} {ahead} than "
        f"naive, if {users}{told_apart}{luck}"
    )
