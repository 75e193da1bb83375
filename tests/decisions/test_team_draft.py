"""Team drafts: whose documents are shown where, and that chance clicks prefer nobody."""

from itertools import pairwise

import numpy as np
import pytest

from dualrank.decisions.interleaving import common_top, team_draft, team_drafts
from dualrank.errors import DataError, SettingsError

RANKINGS = {"a": list("pqrstuvw"), "b": list("pqxrysvz")}


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def neutral_at_every_position(drafts, arms):
    """How likely each arm is at each position, the top on which all agree aside."""
    depth = len(drafts[0].arms)
    for position in range(depth):
        shares = {
            arm: sum(d.probability * d.credits[position] for d in drafts if d.arms[position] == arm)
            for arm in arms
        }
        assert len({round(share, 12) for share in shares.values()}) == 1, (position, shares)


def test_every_team_keeps_the_order_of_its_ranking(rng):
    for _ in range(200):
        drawn = team_draft(RANKINGS, rng, depth=6)
        assert len(set(drawn.documents)) == len(drawn.documents) == 6
        for arm, ranking in RANKINGS.items():
            picked = [d for d, team in zip(drawn.documents, drawn.arms, strict=True) if team == arm]
            ranks = [ranking.index(document) for document in picked]
            assert all(one < other for one, other in pairwise(ranks))


def test_an_arm_picks_the_best_that_is_left(rng):
    for _ in range(100):
        drawn = team_draft(RANKINGS, rng, depth=6)
        for place, (document, team) in enumerate(zip(drawn.documents, drawn.arms, strict=True)):
            if team is not None:
                before = drawn.documents[:place]
                assert document == next(d for d in RANKINGS[team] if d not in before)


def test_teams_are_never_more_than_one_apart(rng):
    for _ in range(100):
        arms = team_draft(RANKINGS, rng, depth=7).arms
        for place in range(len(arms)):
            assert abs(arms[:place].count("a") - arms[:place].count("b")) <= 1


def test_documents_at_the_top_on_which_all_agree_are_of_nobody(rng):
    assert common_top(RANKINGS, 10) == ("p", "q")
    drawn = team_draft(RANKINGS, rng, depth=5)
    assert drawn.documents[:2] == ("p", "q")
    assert drawn.arms[:2] == (None, None)
    assert None not in drawn.arms[2:]
    same = team_draft({"a": list("xyz"), "b": list("xyz")}, rng, depth=2)
    assert same.arms == (None, None)
    assert same.credits == (0.0, 0.0)


def test_single_draws_are_neutral_on_average(rng):
    drawn = [team_draft(RANKINGS, rng, depth=6).arms for _ in range(4_000)]
    for position in range(2, 6):
        share = np.mean([arms[position] == "a" for arms in drawn])
        assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(4_000)


@pytest.mark.parametrize("count", [2, 7, 16])
def test_draws_of_a_query_are_neutral_together(rng, count):
    drafts = team_drafts(RANKINGS, rng, 6, count)
    assert len(drafts) == -(-count // 2) * 2
    assert sum(each.probability for each in drafts) == pytest.approx(1)
    neutral_at_every_position(drafts, RANKINGS)


def test_multileaving_is_neutral_and_keeps_order(rng):
    rankings = {**RANKINGS, "c": list("pzyxwvut")}
    for depth in (2, 3, 5, 8):
        drafts = team_drafts(rankings, rng, depth, 12)
        neutral_at_every_position(drafts, rankings)
        for each in drafts:
            for arm, ranking in rankings.items():
                ranks = [
                    ranking.index(d)
                    for d, team in zip(each.documents, each.arms, strict=True)
                    if team == arm
                ]
                assert ranks == sorted(ranks)


@pytest.mark.parametrize(
    ("first", "second"),
    [("abc", "abcdefg"), ("xy", "yx"), ("a", "b"), ("abcd", "dx"), ("abcdef", "fghij"), ("", "ab")],
)
def test_short_rankings_are_neutral_too(first, second):
    for seed in range(20):
        drafts = team_drafts({"a": first, "b": second}, np.random.default_rng(seed), 6, 2)
        # Draws may differ in length; what is missing counts for nobody.
        for position in range(6):
            shares = [
                sum(
                    d.credits[position] for d in drafts if d.arms[position : position + 1] == (arm,)
                )
                for arm in "ab"
            ]
            assert shares[0] == shares[1]
        assert all(set(d.documents) <= set(first + second) for d in drafts)


def test_seeds_give_the_same_draws():
    one, other = (team_drafts(RANKINGS, np.random.default_rng(9), 6, 8) for _ in range(2))
    assert one == other
    assert one != team_drafts(RANKINGS, np.random.default_rng(10), 6, 8)


def test_what_cannot_be_interleaved(rng):
    with pytest.raises(DataError, match="there is 1 ranking; interleaving takes two or more"):
        team_draft({"a": ["x"]}, rng)
    with pytest.raises(DataError, match="the ranking of 'a' has document 'x' twice"):
        team_draft({"a": ["x", "x"], "b": ["y"]}, rng)
    with pytest.raises(SettingsError, match="depth is the length of the lists, 1 or more, not 0"):
        team_draft(RANKINGS, rng, depth=0)
    with pytest.raises(SettingsError, match="count is the number of draws, 1 or more, not 0"):
        team_drafts(RANKINGS, rng, count=0)
