"""How much of what looks like position is what the logging ranker knew?

A document stood on top because the logging ranker liked it, and is clicked for the same reason. The
order displayed tells what that ranker must have thought of the documents (`logging_scores`), and
with that beside the scores of the jointly learned ranker,

    P(k | a click) = softmax_k(b f(x_k) + a s_k + φ_k),

held-out clicks tell a from φ. Where φ falls less steeply with a than without, the difference is
what joint learning has taken for examination. Where a is not clear, φ with an a that would have
been tells how large a difference may have been missed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dualrank.certainty import TELLING, seen
from dualrank.data.click_log import ClickLog
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question
from dualrank.evaluation.click_check import CLEAR
from dualrank.evaluation.click_logit import RIDGE, ClickLogit, Floats
from dualrank.learning.logging_scores import logging_scores, spread_of

NAME = "confounding"
TOLD = 0.05
"""How much logging scores must differ from the mean of their rank, of what they differ in all."""
ALIKE = 1.2
"""Curves that differ by less than this factor everywhere lead to much the same ranker."""

FAR = 100.0
PINNED = 1e9
"""A ridge that lets a parameter be what it is drawn to."""


def confounding(facts: LogFacts) -> Point:
    """The curve with and without a term for the logging ranker's score."""
    trained, dataset = facts.trained, facts.dataset
    if isinstance(trained, str) or dataset is None or trained.imitated is None:
        why = trained if isinstance(trained, str) else "the order displayed was not imitated"
        return Question(NAME).answer("not measured", f"{why[0].upper()}{why[1:]}.")
    held_out: ClickLog = trained.held_out
    lists = held_out.lists
    columns = []
    for values in (lists.gather(trained.dual), logging_scores(trained.imitated, lists, dataset)):
        columns.append(np.where(lists.mask, values / spread_of(values, lists.mask), 0.0))
    clicks = held_out.clicks_per_list.astype(np.float64)
    both, means = ClickLogit(np.stack(columns, axis=-1), clicks, lists.mask).centred()
    if both.inputs[:, :, 1][lists.mask].std() < TOLD:
        return Question(NAME).answer(
            "not measured",
            "The logging ranker's scores lie equally far apart on all lists, so that what it knew "
            "cannot be told from position.",
        )
    at, without = both.fit(), replace(both, inputs=both.inputs[:, :, :1]).fit()
    phi, phi_without = at[2:] - means @ at[:2], without[1:] - means[:, 0] * without[0]
    worth, error = float(at[1]), float(both.errors(at, lists.queries)[1])
    factors = np.exp((phi - phi[0]) - (phi_without - phi_without[0]))
    position = int(np.argmax(np.abs(np.log(factors))))
    factor = float(factors[position])
    size = max(factor, 1 / factor)
    missed = _moved_by(both, means, seen(CLEAR) * error)
    numbers = {
        "worth_of_the_logging_score": worth,
        "standard_error": error,
        "factor": factor,
        "position": position + 1,
        "would_have_been_seen": missed,
    }
    asked = Question(NAME, numbers)
    wrong = f"a factor of {missed:.1f}" if missed < FAR else "any factor"
    if worth < CLEAR * error and missed > TELLING:
        return asked.answer(
            "not measured",
            "Whether joint learning takes what the logging ranker knew for examination cannot be "
            f"told: a curve that is wrong by {wrong} could have been missed.",
            "Log longer, or collect some swaps (see plan_swaps).",
        )
    if worth < CLEAR * error or size < ALIKE:
        return asked.answer(
            "good",
            "With the logging ranker's score told apart, the curve stays as it is (within a factor "
            f"of {size:.2f}); a change by one of {max(missed, ALIKE):.2f} would have been seen.",
        )
    return asked.answer(
        "warning",
        f"With the logging ranker's score told apart, position {position + 1} is examined "
        f"{factor:.2f} times as often as joint learning has it: what that ranker knew is taken for "
        "examination.",
        "Train with method grounded, which tells the two apart, or auto.",
    )


def _moved_by(both: ClickLogit, means: Floats, worth: float) -> float:
    """The largest factor by which the curve differs with a = `worth` from that with a = 0."""
    curves = []
    for pinned in (0.0, worth):
        around = np.zeros(sum(both.inputs.shape[1:]))
        around[1] = pinned
        held = np.full(len(around), RIDGE)
        held[1] = PINNED
        at = both.fit(held, around)
        phi = at[2:] - means @ at[:2]
        curves.append(phi - phi[0])
    return float(np.exp(np.abs(curves[1] - curves[0]).max()))
