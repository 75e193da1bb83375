"""The dynamic Bayesian network: users leave when a clicked document satisfies them."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from dualrank.clicks.browsing import Chain
from dualrank.clicks.models.chain_em import ChainCounts, expect
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import Floats, click_through, ratio
from dualrank.clicks.models.em import HALF, Beta, Climb, Parameters, climb
from dualrank.clicks.models.fitted import Fitted, Layout
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.click_log import ClickLog


class _Network(NamedTuple):
    """The parameters of a dynamic Bayesian network; γ is an array of one."""

    attraction: Floats
    satisfaction: Floats
    gamma: Floats

    @property
    def after_click(self) -> Floats:
        """How likely a user goes on after a click on each pair."""
        return self.gamma * (1 - self.satisfaction)


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

    def _fit(self, log: ClickLog) -> Fitted:
        counts = ChainCounts.of_documents(log)
        clicks, last = counts.clicks.sum(), counts.last_clicks()
        of_attraction = self.prior.at(click_through(log))
        of_satisfaction = self.prior.at(last.sum() / clicks if clicks > 0 else 0.5)
        # As if every user left, satisfied, at the last click.
        examined = counts.clicks + counts.skips + counts.without_clicks()
        found: Parameters = (
            of_attraction.estimate(counts.clicks, examined),
            of_satisfaction.estimate(last, counts.went_on + last),
            np.array([1.0 if self.persistent else 0.9]),
        )
        path = Climb()
        if self.exact:
            step = partial(
                _step, counts, of_attraction, of_satisfaction, persistent=self.persistent
            )
            found, path = climb(step, found, self.em)
        network = _Network(*found)
        return Fitted.on(
            log,
            _evidence(counts, network, of_attraction.mean, of_satisfaction.mean),
            {"continuation": network.gamma},
            path,
        )

    def relevance_of_pairs(self) -> PairParameter:
        """Attraction times satisfaction."""
        return self.fitted.pairs["attraction"].times(self.fitted.pairs["satisfaction"])

    def _browse(self, layout: Layout) -> Chain:
        gamma = layout.shared("continuation")
        return Chain(
            layout.of_pairs("attraction"), gamma * (1 - layout.of_pairs("satisfaction")), gamma
        )


def _step(
    counts: ChainCounts,
    attraction_prior: Beta,
    satisfaction_prior: Beta,
    parameters: Parameters,
    *,
    persistent: bool = False,
) -> tuple[Parameters, float]:
    """One iteration of EM; `persistent` keeps γ as it is.

    A user who stopped after a click was either satisfied or tired:

        P(satisfied | stopped) = s / (s + (1 − s) (1 − γ))
    """
    now = _Network(*parameters)
    hidden = expect(counts, now.attraction, now.after_click, float(now.gamma[0]))
    objective = hidden.log_likelihood + attraction_prior.log_density(now.attraction)
    objective += satisfaction_prior.log_density(now.satisfaction)
    satisfied = hidden.stopped * ratio(now.satisfaction, 1 - now.after_click, otherwise=1.0)
    went_on = counts.went_on + hidden.went_on
    gamma = now.gamma
    if not persistent:
        objective += HALF.log_density(gamma)
        onward = np.array([counts.skips.sum() + hidden.skip_went_on + went_on.sum()])
        tired = hidden.skip_stopped + (hidden.stopped - satisfied).sum()
        gamma = HALF.estimate(onward, onward + tired)
    examined = counts.clicks + counts.skips + hidden.skips
    better = _Network(
        attraction_prior.estimate(counts.clicks, examined),
        satisfaction_prior.estimate(satisfied, hidden.stopped + went_on),
        gamma,
    )
    return better, objective


def _evidence(
    counts: ChainCounts, network: _Network, attraction: float, satisfaction: float
) -> dict[str, PairParameter]:
    """The parameters of pairs with their evidence; the means are those of pairs never seen.

    Silence after a last click speaks for satisfaction by v = y s / (1 − s) (see `Expected`), as a
    skip speaks against attraction by w.
    """
    hidden = expect(counts, network.attraction, network.after_click, float(network.gamma[0]))
    unsatisfied = 1 - network.satisfaction
    odds = ratio(network.satisfaction, unsatisfied)
    going_on = PairParameter.from_examinations(
        unsatisfied,
        counts.went_on,
        odds * hidden.reasons,
        odds**2 * hidden.reason_squares,
        1 - satisfaction,
    )
    return {
        "attraction": counts.attraction(network.attraction, hidden, attraction),
        "satisfaction": going_on.complement(),
    }
