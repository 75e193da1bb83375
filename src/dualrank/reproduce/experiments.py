"""All experiments by name: where each lies, and what it is about. None is imported here."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """The class of an experiment as `module:Class`, and one line about it."""

    place: str
    about: str


EXPERIMENTS = {
    "oracle-mode": Entry(
        "dualrank.reproduce.oracle_mode:OracleMode",
        "The paper's Table 2: seven rankers, MAP, nDCG and ERR, significance against DLA.",
    ),
    "realistic-mode": Entry(
        "dualrank.reproduce.realistic_mode:RealisticMode",
        "The paper's Figures 1 and 2: users have changed since their examination was measured.",
    ),
    "drift": Entry(
        "dualrank.reproduce.drift:Drift",
        "Users change during training: the severity jumps, stays, and goes back slowly.",
    ),
    "scenarios": Entry(
        "dualrank.reproduce.scenarios:Scenarios",
        "Logs on which dual learning is right, and on which it is not.",
    ),
    "click-models": Entry(
        "dualrank.reproduce.table_3:ClickModels",
        "The paper's Table 3: dual learning against click models, from web pages and a click log.",
    ),
}
