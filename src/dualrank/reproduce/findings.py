"""What the numbers say, in sentences that are computed and never assumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dualrank.report import (
    Results,
    extra,
    main_metric,
    method,
    metric_label,
    ordered_methods,
    setting_label,
)

POSITION_BASED = (
    "The clicks were simulated, by users who behave exactly as the position-based model assumes. A "
    "gain on simulated clicks is not a gain on your users: real users also click by habit, by "
    "trust in the top result and by looks. Judge a ranker learned from your log on judged queries "
    "or in an online test before you rely on it."
)


@dataclass(frozen=True)
class Comparison:
    """DLA against another method; `p` is None where the difference was not tested."""

    dla: float
    other: float
    p: float | None
    alpha: float

    @property
    def gain(self) -> float:
        """How much better DLA is, negative where it is worse."""
        return self.dla - self.other

    @property
    def level(self) -> bool:
        """Whether the two print alike to three decimals of difference."""
        return abs(self.gain) < 0.0005

    @property
    def significant(self) -> bool:
        """Whether a test was made and found a difference."""
        return self.p is not None and self.p <= self.alpha

    @property
    def p_text(self) -> str:
        """The p-value as people write it."""
        return "p < 0.001" if self.p is not None and self.p < 0.001 else f"p = {self.p:.3f}"

    @property
    def aside(self) -> str:
        """The test in brackets, where there was one."""
        if self.p is None:
            return ""
        return f" ({'' if self.significant else 'not significant, '}{self.p_text})"


def findings(results: Results) -> list[str]:
    """The most important first; empty where there is nothing to compare."""
    metric = main_metric(results)
    if metric is None:
        return []
    mean = _mean(results, "dla", metric)
    if mean is None:
        return _without_dla(results, metric)
    sentences = (
        [] if "naive" in results.methods else [f"DLA reaches {mean:.3f} {metric_label(metric)}."]
    )
    against: dict[str, Callable[[Comparison], str]] = {
        "naive": partial(_against_naive, metric_label(metric)),
        "randlist": _against_randlist,
        **_best_click_model(results, metric),
        "initial": _against_initial,
        "oracle": _against_oracle,
    }
    for name, say in against.items():
        if (found := compare(results, name, metric)) is not None:
            sentences.append(say(found))
    return [*sentences, *_weights(results), over_how_many_seeds(results)]


def compare(results: Results, other: str, metric: str) -> Comparison | None:
    """DLA against another method, or None where one of them did not run."""
    dla, mean = _mean(results, "dla", metric), _mean(results, other, metric)
    if dla is None or mean is None:
        return None
    test = results.significance
    known = test.get("reference", "dla") == "dla"
    p = test.get("p_values", {}).get(other, {}).get(metric) if known else None
    return Comparison(dla, mean, p, float(test.get("alpha", 0.05)))


def _against_naive(metric: str, found: Comparison) -> str:
    numbers = f"({found.dla:.3f} against {found.other:.3f})"
    if found.level:
        return f"DLA and uncorrected clicks reach the same {metric} {numbers}."
    size = f"{abs(found.gain):.3f} {metric}"
    if found.significant:
        verb, harm = "gains {} over", ""
        if found.gain < 0:
            verb, harm = "loses {} against", ": here the correction did harm"
        what = f"{verb.format(size)} uncorrected clicks {numbers}, significantly"
        return f"DLA {what} ({found.p_text}){harm}."
    what = f"DLA is {size} {'above' if found.gain > 0 else 'below'} uncorrected clicks {numbers}"
    if found.p is None:
        return f"{what}; this was not tested."
    return f"{what}, but not significantly ({found.p_text}): no gain is shown."


def _against_randlist(found: Comparison) -> str:
    what = "propensities measured by shuffling results"
    cost = "a measurement that shows users shuffled lists and that DLA does without"
    if found.level:
        return f"It is level with {what}, {cost}."
    side = "above" if found.gain > 0 else "below"
    return f"It is {abs(found.gain):.3f} {side} {what}{found.aside}, {cost}."


def _best_click_model(results: Results, metric: str) -> dict[str, Callable[[Comparison], str]]:
    """The one with the highest mean, where there are some, and what is said of it."""
    names = [name for name in results.methods if name.startswith("click-model-")]
    if not names:
        return {}
    best = max(names, key=lambda name: _mean(results, name, metric) or 0.0)
    which = f"the best of {len(names)} click models" if len(names) > 1 else "a click model"
    label = f"{method(best).label.removeprefix('DNN, ')}, {which},"

    def say(found: Comparison) -> str:
        if found.level:
            return f"The relevance of {label} serves as well."
        side = f"{abs(found.gain):.3f} {'below' if found.gain > 0 else 'above'}"
        return f"Trained on the relevance of {label} the same network is {side} DLA{found.aside}."

    return {best: say}


def _against_initial(found: Comparison) -> str:
    before = f"The ranker whose lists were clicked on is at {found.other:.3f}"
    if found.level:
        return f"{before}: learning from these clicks changed nothing."
    change = f"{'added' if found.gain > 0 else 'lost'} {abs(found.gain):.3f}{found.aside}"
    worse = found.significant and found.gain < 0
    choice = ": the old ranker is the better choice" if worse else ""
    return f"{before}, so learning from its clicks {change}{choice}."


def _against_oracle(found: Comparison) -> str:
    teacher = f"Trained on the judgements themselves, the same network reaches {found.other:.3f}"
    if found.level:
        return f"{teacher}, the same as DLA."
    side = f"{abs(found.gain):.3f} {'below' if found.gain > 0 else 'above'} DLA{found.aside}"
    left = ": what is left to gain" if found.significant and found.gain < 0 else ""
    return f"{teacher}, {side}{left}."


def _weights(results: Results) -> list[str]:
    errors = {}
    for name in ("dla", "randlist"):
        found = [run.propensity.mse for run in results.of(name) if run.propensity]
        if known := [mse for mse in found if mse is not None]:
            errors[name] = float(np.mean(known))
    if "dla" not in errors:
        return []
    measured = f"; the measured ones have {errors['randlist']:.2g}" if "randlist" in errors else ""
    return [
        f"DLA's inverse propensity weights have a mean squared error of {errors['dla']:.2g} "
        f"against the true ones{measured}."
    ]


def over_how_many_seeds(results: Results) -> str:
    """How many seeds stand behind the numbers."""
    seeds = len({run.seed for run in results.runs})
    if seeds == 1:
        return "This is one seed: how much of it is luck is not known."
    return f"All numbers are means over {seeds} seeds."


def _without_dla(results: Results, metric: str) -> list[str]:
    means = {name: _mean(results, name, metric) for name in ordered_methods(results)}
    found = {name: mean for name, mean in means.items() if mean is not None}
    if len(found) < 2:
        return []
    first, second = sorted(found, key=lambda name: -found[name])[:2]
    return [
        f"{method(first).label} has the highest {metric_label(metric)}, {found[first]:.3f}, "
        f"before {method(second).label} with {found[second]:.3f}.",
        over_how_many_seeds(results),
    ]


def ranges(results: Results, swept: str) -> list[str]:
    """How far each method goes over the values of a swept setting."""
    metric = main_metric(results)
    sign = setting_label(swept)
    sentences = []
    for name in ordered_methods(results):
        groups: dict[object, list[float]] = {}
        for run in results.of(name):
            if metric in run.metrics and extra(run, swept) is not None:
                groups.setdefault(extra(run, swept), []).append(run.metrics[metric])
        if not groups:
            continue
        means = {value: float(np.mean(group)) for value, group in groups.items()}
        low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        sentences.append(
            f"{method(name).label}: {metric_label(str(metric))} from {means[low]:.3f} "
            f"({sign} = {low}) to {means[high]:.3f} ({sign} = {high})."
        )
    return [*sentences, over_how_many_seeds(results)] if sentences else []


def _mean(results: Results, name: str, metric: str) -> float | None:
    values = [run.metrics[metric] for run in results.of(name) if metric in run.metrics]
    return float(np.mean(values)) if values else None
