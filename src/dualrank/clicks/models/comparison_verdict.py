"""What a comparison of click models says of the users, and which method is made for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualrank.certainty import level_errors

if TYPE_CHECKING:
    from dualrank.clicks.models.comparison import Score

_LEAVES = (
    "Users read from the top and leave: train with method stopping, or auto; weights by position "
    "(dla, ipw, likelihood) are wrong for them."
)
_NOTHING = (
    "No model of a habit can be fitted here: too few sessions saw the same document at several "
    "positions. Believe no relevance that a click model extracts from this log; what users do "
    "shows in diagnose, which takes all documents together."
)
_MEANS = {
    "random-ctr": _NOTHING,
    "rank-ctr": _NOTHING,
    "document-ctr": _NOTHING,
    "pbm": "A position is seen or not whatever was clicked above: weights by position are right; "
    "train with method likelihood, or auto.",
    "pbm-trust": "Users click the top beyond seeing it, relevant or not: train with method affine, "
    "which corrects for trust, or auto.",
    "cascade": _LEAVES,
    "dcm": _LEAVES,
    "dcm-em": _LEAVES,
    "ccm": _LEAVES,
    "sdbn": _LEAVES,
    "sdbn-em": _LEAVES,
    "dbn": _LEAVES,
    "ubm": "Where users look depends on where they last clicked, which no weight by position "
    "corrects: train with method click-model and this model, or auto, and read an examination "
    "curve as the average over these users.",
}
"""What a model's lead says of the users, and which method is made for them."""
_SIMPLEST_FIRST = tuple(_MEANS)

_MORE_TRUST = 0.02
"""By how much more, of the clicks on relevant documents there, to be taken for trust."""


def comparison_verdict(scores: Sequence[Score]) -> list[str]:
    """Which model predicts best, how sure that is, and what to learn with; in sentences."""
    ranked = sorted(scores, key=lambda score: -score.log_likelihood)
    if len(ranked) < 2:
        return []
    best, needed = ranked[0], level_errors(len(ranked) - 1)
    level = [each for each in ranked[1:] if each.behind <= needed * each.behind_error]
    second = ranked[1]
    ahead = f"{second.behind:.4f} in log-likelihood per session"
    if not level:
        told = f", {second.behind / second.behind_error:.1f} standard errors" * (
            second.behind_error > 0
        )
        said = (
            f"{best.model} predicts held-out sessions best: it is ahead of {second.model}, the "
            f"next, by {ahead}{told}, where {needed:.1f} would be clear."
        )
        return [said, _meaning(best)]
    names = [each.model for each in level]
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    order = [name for name in _SIMPLEST_FIRST if name in (best.model, *names)]
    plainest = order[0] if order else best.model
    said = (
        f"{best.model} comes first, but {listed} {'is' if len(names) == 1 else 'are'} not clearly "
        f"behind (less than {needed:.1f} standard errors): this log does not tell them apart."
    )
    if plainest == best.model:
        return [said, "It is also the simplest of them.", _meaning(best)]
    simple = next(score for score in ranked if score.model == plainest)
    return [said, f"The simplest of them is {plainest}.", _meaning(simple)]


def _meaning(score: Score) -> str:
    """What it says of the users that this model predicts them best."""
    if score.model != "pbm-trust" or _trusts(score):
        return _MEANS.get(score.model, "")
    return (
        "But as it was fitted, it has no more trust in the top than below, and differs from pbm by "
        "what it presumes of documents seen seldom. " + _MEANS["pbm"]
    )


def _trusts(score: Score) -> bool:
    """Whether irrelevant documents are clicked a larger share of times at the top than below."""
    relevant, irrelevant = (np.array(score.shared.get(k, [])) for k in ("relevant", "irrelevant"))
    if len(relevant) < 2:
        return True
    share = irrelevant / np.maximum(relevant, 1e-9)
    return bool(share[0] > share[1:].mean() + _MORE_TRUST)
