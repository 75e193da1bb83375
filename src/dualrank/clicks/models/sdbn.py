"""The simplified dynamic Bayesian network: only satisfaction ends a session."""

from __future__ import annotations

from dualrank.clicks.models.dbn import DynamicBayesian


class SimplifiedBayesian(DynamicBayesian):
    """The dynamic Bayesian network with γ = 1 (Chapelle and Zhang 2009, section 5).

    The usual closed form takes every user to be satisfied by the last click (and to have read
    everything where there is none):

        α = clicks / displayed at or above the last click,   s = last clicks / clicks

    Where many read on in vain after their last click, both are too high; `sdbn-em` does without
    the assumption.
    """

    name = "sdbn"
    title = "simplified Bayesian network"
    persistent = True
    exact = False


class ExactSimplifiedBayesian(SimplifiedBayesian):
    """The same model without taking users to be satisfied by their last click, by EM."""

    name = "sdbn-em"
    title = "simplified network, by EM"
    exact = True
