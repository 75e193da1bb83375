"""Team-draft interleaving: one list out of several rankings, in which every document has its team.

A user who sees documents of two rankers in one list, and clicks, says which of them he prefers; he
is his own control, so that a difference shows in far fewer sessions than in an A/B test.

Radlinski, Kurup, Joachims: "How does clickthrough data reflect retrieval quality?" (CIKM 2008) for
two rankings; Schuth, Sietsma, Whiteson, Lefortier, de Rijke: "Multileaved comparisons for fast
online evaluation" (CIKM 2014) for more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dualrank.errors import DataError, SettingsError
from dualrank.sentences import counted, shortened

Rankings = Mapping[str, Sequence[str]]
"""What every arm would show, best first, by the arm's name."""


@dataclass(frozen=True)
class Interleaving:
    """A list to be shown: a click on `documents[i]` counts `credits[i]` for `arms[i]`.

    A click on a document whose arm is None counts for nobody. `probability` is how often this list
    is to be shown among those of its query.
    """

    documents: tuple[str, ...]
    arms: tuple[str | None, ...]
    credits: tuple[float, ...]
    probability: float = 1.0


def team_draft(rankings: Rankings, rng: np.random.Generator, depth: int = 10) -> Interleaving:
    """Draw one interleaving: in every round each arm, in random order, picks its best document.

    A document is of the team that picked it, and a click on it counts one for that arm, with two
    exceptions where a click tells nothing about who is better, and a user who clicks at random
    would prefer somebody by chance or by design:

    - documents at the top on which all arms agree (Chapelle et al. 2012) would be shown there
      whoever picks them, and are of no team;
    - once an arm may run out of documents, what the others still show is of no team.

    So at every position each arm is as likely as any other, and random clicks prefer nobody.

    >>> rankings = {"old": ["a", "b", "c", "d"], "new": ["a", "c", "e", "b"]}
    >>> drawn = team_draft(rankings, np.random.default_rng(1), depth=4)
    >>> drawn.documents, drawn.arms
    (('a', 'b', 'c', 'd'), (None, 'old', 'new', 'old'))
    """
    check_rankings(rankings, depth)
    return drafted(rankings, _orders(len(rankings), depth, rng), depth)


def team_drafts(
    rankings: Rankings, rng: np.random.Generator, depth: int = 10, count: int = 16
) -> list[Interleaving]:
    """Draws that are fair together: each comes with those in which the arms' turns are rotated.

    A few independent draws would be lopsided by chance, for every session that is shown one of
    them. Among the draws given here each arm has every position equally often. Their number is
    rounded up to a multiple of the number of arms; each is to be shown with the same probability.

    >>> drafts = team_drafts({"a": "xyz", "b": "zyx"}, np.random.default_rng(0), 3, count=2)
    >>> [drawn.arms for drawn in drafts]
    [('a', 'b', 'a'), ('b', 'a', 'b')]
    """
    check_rankings(rankings, depth)
    if count < 1:
        raise SettingsError(f"count is the number of draws, 1 or more, not {count}")
    arms = len(rankings)
    rounds = -(-count // arms)
    drafts = []
    for _ in range(rounds):
        orders = _orders(arms, depth, rng)
        drafts += [drafted(rankings, (orders + turn) % arms, depth) for turn in range(arms)]
    share = 1.0 / len(drafts)
    return [Interleaving(each.documents, each.arms, each.credits, share) for each in drafts]


def drafted(rankings: Rankings, orders: np.ndarray, depth: int) -> Interleaving:
    """The interleaving in which arms pick in these orders, a row a round; nothing is checked."""
    names = list(rankings)
    waiting = [list(rankings[name][:depth])[::-1] for name in names]
    shown = list(common_top(rankings, depth))
    teams: list[str | None] = [None] * len(shown)
    known = set(shown)
    for order in orders:
        for ranking in waiting:
            ranking[:] = [document for document in ranking if document not in known]
        need = min(len(names), depth - len(shown))
        # Before anybody picks: whether each of them gets a document, whatever the order is.
        fair = all(len(ranking) >= need for ranking in waiting)
        for arm in order:
            while waiting[arm] and waiting[arm][-1] in known:
                waiting[arm].pop()
            if waiting[arm] and len(shown) < depth:
                shown.append(waiting[arm].pop())
                known.add(shown[-1])
                teams.append(names[arm] if fair else None)
        if len(shown) >= depth or not any(waiting):
            break
    credits = tuple(0.0 if team is None else 1.0 for team in teams)
    return Interleaving(tuple(shown), tuple(teams), credits)


def common_top(rankings: Rankings, depth: int) -> tuple[str, ...]:
    """The documents at the top on which all rankings agree.

    >>> common_top({"a": ["x", "y", "z"], "b": ["x", "y", "w"]}, 10)
    ('x', 'y')
    """
    agreed: list[str] = []
    for at_rank in zip(*rankings.values(), strict=False):
        if len(set(at_rank)) > 1 or len(agreed) == depth:
            break
        agreed.append(at_rank[0])
    return tuple(agreed)


def check_rankings(rankings: Rankings, depth: int) -> None:
    """Refuse what cannot be interleaved."""
    if len(rankings) < 2:
        raise DataError(
            f"there is {counted(len(rankings), 'rankings')}; interleaving takes two or more"
        )
    if depth < 1:
        raise SettingsError(f"depth is the length of the lists, 1 or more, not {depth}")
    for arm, ranking in rankings.items():
        top = list(ranking[:depth])
        twice = [document for document in top if top.count(document) > 1]
        if twice:
            raise DataError(
                f"the ranking of {shortened(arm)} has document {shortened(twice[0])} twice; "
                "expected each document once"
            )


def _orders(arms: int, depth: int, rng: np.random.Generator) -> np.ndarray:
    """Who picks when, for more rounds than there can be."""
    return rng.permuted(np.tile(np.arange(arms), (depth + 1, 1)), axis=1)
