"""A model as Vespa takes it: trees as LightGBM's dump, everything else as ONNX.

Beside the file the lines of a rank profile are written, to be pasted into a schema.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dualrank.engines.compared_json import write_compared
from dualrank.engines.contents import feature_names, kept_names
from dualrank.engines.evaluators import vespa_rules
from dualrank.engines.left_to_fill_in import Template
from dualrank.engines.onnx import export_onnx
from dualrank.engines.target import Export, Written
from dualrank.engines.tree_formats import nested, require_splits, used_features
from dualrank.errors import SettingsError
from dualrank.rankers.forest import Forest
from dualrank.storage import require_suffix

FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RANK_FEATURE = re.compile(
    rf"{FUNCTION.pattern}\((?:[^(){{}}\n]|\([^(){{}}\n]*\))*\)(?:\.{FUNCTION.pattern})*"
)
"""bm25(title), fieldMatch(title).completeness, with at most one level of parentheses inside."""
BEYOND_FLOAT32 = 1e39


def to_vespa(asked: Export) -> Written:
    """The target `vespa`."""
    forest = asked.model.ranker.forest()
    if forest is None:
        require_suffix(asked.out, "for Vespa, a ranker without trees", ".onnx")
        names = _require_names(feature_names(asked.model))
        apart = export_onnx(asked.model, asked.out, asked.documents, seed=asked.seed)
        lines = _onnx_profile(asked.out.name, names)
    else:
        require_suffix(asked.out, "for Vespa, a ranker of trees", ".json")
        columns = used_features(require_splits(forest))
        names = _require_names([kept_names(asked.model)[column] for column in columns])
        content = _dump(forest, names, columns.tolist())
        apart = write_compared(asked, "Vespa's expression", content, vespa_rules.score)
        lines = _tree_profile(asked.out.name, names)

    def lacking(kept: str) -> list[str]:
        return _lacking(kept, asked.out.name, names, in_order=forest is None)

    profile = Template.write(asked.out, "rank-profile.txt", lines, lacking)
    needed = f"the rank profile, with the {len(names)} features that it needs"
    return Written(
        f"for the directory models/ of an application; its scores differ from the model's by at "
        f"most {apart:.2g} of the score; {profile.sentence(needed)}",
        {"max_difference": apart, "features": names, "rank_profile": str(profile.path)},
    )


def _require_names(names: list[str]) -> list[str]:
    """Names that a rank profile can have: of functions, or of Vespa's own rank features."""
    for name in names:
        if not FUNCTION.fullmatch(name) and not RANK_FEATURE.fullmatch(name):
            raise SettingsError(
                f"Vespa takes no feature called {name!r}: rename the column to letters, digits and "
                "_, or to a rank feature such as bm25(title), and train again"
            )
    return names


def _dump(forest: Forest, names: list[str], columns: list[int]) -> dict[str, Any]:
    """What `dump_model` of LightGBM gives, as far as Vespa reads it.

    LightGBM's rule is x ≤ threshold, but Vespa makes x < threshold of it: thresholds are the next
    float up, so that the file means the model in Vespa, and not in LightGBM.
    """
    with np.errstate(over="ignore"):
        above = np.nextafter(forest.threshold, np.float32(np.inf)).astype(np.float64)
    above[np.isinf(above)] = BEYOND_FLOAT32
    place = {column: number for number, column in enumerate(columns)}

    def split(node: int, left: Any, right: Any) -> dict[str, Any]:
        return {
            "split_feature": place[int(forest.feature[node])],
            "threshold": float(above[node]),
            "decision_type": "<=",
            "default_left": bool(forest.missing_left[node]),
            "left_child": left,
            "right_child": right,
        }

    trees = nested(forest, lambda node: {"leaf_value": float(forest.value[node])}, split)
    return {
        "name": "tree",
        "objective": "lambdarank",
        "feature_names": names,
        "feature_infos": {},
        "tree_info": [
            {"tree_index": number, "tree_structure": tree} for number, tree in enumerate(trees)
        ],
        "pandas_categorical": [],
    }


def _functions(names: list[str]) -> str:
    """A function for every name that is no rank feature of Vespa's own, like bm25(title)."""
    return "".join(
        f"    function {name}() {{\n        expression: PUT THE RANK FEATURE HERE\n    }}\n"
        for name in names
        if FUNCTION.fullmatch(name)
    )


def _tree_profile(file: str, names: list[str]) -> str:
    return (
        "rank-profile dualrank {\n"
        f"{_functions(names)}"
        "    first-phase {\n        expression: nativeRank\n    }\n"
        f'    second-phase {{\n        expression: lightgbm("{file}")\n    }}\n'
        "}\n"
    )


def _onnx_profile(file: str, names: list[str]) -> str:
    return (
        "rank-profile dualrank {\n"
        f"{_functions(names)}"
        "    function dualrank_features() {\n"
        f"        expression: tensor<float>(d0[1],d1[{len(names)}]):[[{', '.join(names)}]]\n"
        "    }\n"
        "    onnx-model dualrank {\n"
        f"        file: models/{file}\n"
        '        input "features": dualrank_features\n'
        '        output "score": score\n'
        "    }\n"
        "    first-phase {\n        expression: nativeRank\n    }\n"
        "    second-phase {\n        expression: onnx(dualrank).score{d0:0}\n    }\n"
        "}\n"
    )


def _lacking(kept: str, file: str, names: list[str], *, in_order: bool) -> list[str]:
    """What a profile lacks: the model's file, functions and, for ONNX, all features in order.

    Trees ask Vespa for its own rank features by name, and need no line for them.
    """
    lacks = []
    if not re.search(rf"(?<![\w.-]){re.escape(file)}(?![\w.-])", kept):
        lacks.append(f"the model {file}")
    listed = f"[[{','.join(names)}]]"
    if in_order and re.sub(r"\s", "", listed) not in re.sub(r"\s", "", kept):
        lacks.append(f"a tensor of the {len(names)} features in the order of the training")
    functions = set(re.findall(r"\bfunction\s+(?:inline\s+)?(\w+)\s*\(", kept))
    return lacks + [name for name in names if FUNCTION.fullmatch(name) and name not in functions]
