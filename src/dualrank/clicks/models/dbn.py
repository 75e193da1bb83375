"""The dynamic Bayesian network: users leave when a clicked document satisfies them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from dualrank.clicks.browsing import Chain
from dualrank.clicks.models.chain_em import ChainCounts, expect
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import Floats, click_through, ratio
from dualrank.clicks.models.em import HALF, Beta, Climb, Parameters, climb
from dualrank.clicks.models.fitted import Fitted, FittedParts, Layout
from dualrank.clicks.models.kept_counts import KeptCounts
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.log_parts import LogParts


class _Priors(NamedTuple):
    """Those of attraction and of satisfaction."""

    attraction: Beta
    satisfaction: Beta


class DynamicBayesian(ClickModel):
    """A cascade with attraction α, satisfaction s and persistence γ (Chapelle and Zhang 2009).

        P(c_k = 1 | E_k = 1) = α_d
        P(E_(k+1) = 1 | E_k = 1, c_k) = γ after a skip, γ (1 − s_d) after a click

    by full EM. Relevance is α s: attractive, and satisfying once clicked. α is drawn to the log's
    click-through, s to the share of clicks that were the last of their session, each with the
    strength of `prior`; γ to one half with one trial.
    """

    name = "dbn"
    title = "dynamic Bayesian network"

    persistent: ClassVar[bool] = False
    exact: ClassVar[bool] = True

    def _fit_parts(self, log: LogParts) -> FittedParts:
        parts = KeptCounts(log, lambda part: ChainCounts.of_documents(part.log))
        clicks = sum(counts.clicks.sum() for counts in parts)
        last = sum(counts.last_clicks().sum() for counts in parts)
        priors = _Priors(
            self.prior.at(click_through(log)),
            self.prior.at(last / clicks if clicks > 0 else 0.5),
        )
        found, path = _start(parts, priors, 1.0 if self.persistent else 0.9), Climb()
        if self.exact:
            step = partial(_step, parts, priors, persistent=self.persistent)
            found, path = climb(step, found, self.em)
        (gamma,) = found.shared

        def evidence(number: int) -> dict[str, PairParameter]:
            return _evidence(parts[number], found.pairs[number], gamma, priors)

        return FittedParts(
            log,
            {"continuation": gamma},
            [dict(zip(_Priors._fields, each, strict=True)) for each in found.pairs],
            {name: prior.mean for name, prior in priors._asdict().items()},
            evidence,
            path,
        )

    def _relevance_of(self, fitted: Fitted) -> PairParameter:
        """Attraction times satisfaction."""
        return fitted.pairs["attraction"].times(fitted.pairs["satisfaction"])

    def _browse(self, layout: Layout) -> Chain:
        gamma = layout.shared("continuation")
        return Chain(
            layout.of_pairs("attraction"), gamma * (1 - layout.of_pairs("satisfaction")), gamma
        )


def _start(parts: Sequence[ChainCounts], priors: _Priors, gamma: float) -> Parameters:
    """As if every user left, satisfied, at the last click."""
    pairs = list[tuple[Floats, ...]]()
    for counts in parts:
        trials, last = counts.until_last_click(), counts.last_clicks()
        attraction = priors.attraction.estimate(trials.clicks, trials.trials)
        satisfaction = priors.satisfaction.estimate(last, counts.went_on + last)
        pairs.append((attraction, satisfaction))
    return Parameters(pairs, (np.array([gamma]),))


def _step(
    parts: Sequence[ChainCounts], priors: _Priors, now: Parameters, *, persistent: bool = False
) -> tuple[Parameters, float]:
    """One iteration of EM; `persistent` keeps γ as it is.

    A user who stopped after a click was either satisfied or tired:

        P(satisfied | stopped) = s / (s + (1 − s) (1 − γ))
    """
    (gamma,) = now.shared
    objective = 0.0 if persistent else HALF.log_density(gamma)
    pairs = list[tuple[Floats, ...]]()
    onward, tired = np.zeros(1), 0.0
    for counts, (attraction, satisfaction) in zip(parts, now.pairs, strict=True):
        after_click = gamma * (1 - satisfaction)
        hidden = expect(counts, attraction, after_click, float(gamma[0]))
        objective += hidden.log_likelihood + priors.attraction.log_density(attraction)
        objective += priors.satisfaction.log_density(satisfaction)
        satisfied = hidden.stopped * ratio(satisfaction, 1 - after_click, otherwise=1.0)
        went_on = counts.went_on + hidden.went_on
        onward += counts.skips.sum() + hidden.skip_went_on + went_on.sum()
        tired += hidden.skip_stopped + float((hidden.stopped - satisfied).sum())
        examined = counts.clicks + counts.skips + hidden.skips
        better = (
            priors.attraction.estimate(counts.clicks, examined),
            priors.satisfaction.estimate(satisfied, hidden.stopped + went_on),
        )
        pairs.append(better)
    if not persistent:
        gamma = HALF.estimate(onward, onward + tired)
    return Parameters(pairs, (gamma,)), objective


def _evidence(
    counts: ChainCounts, pairs: tuple[Floats, ...], gamma: Floats, priors: _Priors
) -> dict[str, PairParameter]:
    """The parameters of pairs with their evidence; the means are those of pairs never seen.

    Silence after a last click speaks for satisfaction by v = y s / (1 − s) (see `Expected`), as a
    skip speaks against attraction by w.
    """
    attraction, satisfaction = pairs
    unsatisfied = 1 - satisfaction
    hidden = expect(counts, attraction, gamma * unsatisfied, float(gamma[0]))
    odds = ratio(satisfaction, unsatisfied)
    going_on = PairParameter.from_examinations(
        unsatisfied,
        counts.went_on,
        odds * hidden.reasons,
        odds**2 * hidden.reason_squares,
        1 - priors.satisfaction.mean,
    )
    return {
        "attraction": counts.attraction(attraction, hidden, priors.attraction.mean),
        "satisfaction": going_on.complement(),
    }
