"""All experiments by name: where the class of each lies, and one line about it."""

from __future__ import annotations

EXPERIMENTS = {
    "oracle-mode": (
        "dualrank.reproduce.oracle_mode:OracleMode",
        "The paper's Table 2: seven rankers, MAP, nDCG and ERR, significance against DLA.",
    ),
    "realistic-mode": (
        "dualrank.reproduce.realistic_mode:RealisticMode",
        "The paper's Figures 1 and 2: users have changed since their examination was measured.",
    ),
    "drift": (
        "dualrank.reproduce.drift:Drift",
        "Users change during training: the severity jumps, stays, and goes back slowly.",
    ),
    "methods": (
        "dualrank.reproduce.method_comparison:Methods",
        "Every method on logs of many kinds of rankers and users, and on public collections.",
    ),
    "scenarios": (
        "dualrank.reproduce.method_comparison:Scenarios",
        "Logs on which dual learning is right, and on which it is not.",
    ),
    "click-models": (
        "dualrank.reproduce.table_3:ClickModels",
        "The paper's Table 3: dual learning against click models, from web pages and a click log.",
    ),
}
