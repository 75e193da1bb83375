"""What the numbers say, in sentences that are computed and never assumed."""

from __future__ import annotations

from dataclasses import dataclass

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
        assert self.p is not None
        return "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"


def findings(results: Results) -> list[str]:
    """The most important first; empty where there is nothing to compare."""
    metric = main_metric(results)
    if metric is None:
        return []
    if _mean(results, "dla", metric) is None:
        return _without_dla(results, metric)
    sentences = [
        _against_naive(compare(results, "naive", metric), metric_label(metric))
        or f"DLA reaches {_mean(results, 'dla', metric):.3f} {metric_label(metric)}.",
        _against_randlist(compare(results, "randlist", metric)),
        _against_click_models(results, metric),
        _against_initial(compare(results, "initial", metric)),
        _against_oracle(compare(results, "oracle", metric)),
        _weights(results),
    ]
    return [*(sentence for sentence in sentences if sentence), over_how_many_seeds(results)]


def compare(results: Results, other: str, metric: str) -> Comparison | None:
    """DLA against another method, or None where one of them did not run."""
    dla, mean = _mean(results, "dla", metric), _mean(results, other, metric)
    if dla is None or mean is None:
        return None
    test = results.significance
    known = test.get("reference", "dla") == "dla"
    p = test.get("p_values", {}).get(other, {}).get(metric) if known else None
    return Comparison(dla, mean, p, float(test.get("alpha", 0.05)))


def _against_naive(found: Comparison | None, metric: str) -> str:
    if found is None:
        return ""
    numbers = f"({found.dla:.3f} against {found.other:.3f})"
    if found.level:
        return f"DLA and uncorrected clicks reach the same {metric} {numbers}."
    size = f"{abs(found.gain):.3f} {metric}"
    if found.significant and found.gain > 0:
        return (
            f"DLA gains {size} over uncorrected clicks {numbers}, significantly ({found.p_text})."
        )
    if found.significant:
        return (
            f"DLA loses {size} against uncorrected clicks {numbers}, significantly "
            f"({found.p_text}): here the correction did harm."
        )
    side = "above" if found.gain > 0 else "below"
    if found.p is None:
        return f"DLA is {size} {side} uncorrected clicks {numbers}; this was not tested."
    return (
        f"DLA is {size} {side} uncorrected clicks {numbers}, but not significantly "
        f"({found.p_text}): no gain is shown."
    )


def _against_randlist(found: Comparison | None) -> str:
    if found is None:
        return ""
    what = "propensities measured by shuffling results"
    cost = "a measurement that shows users shuffled lists and that DLA does without"
    if found.level:
        return f"It is level with {what}, {cost}."
    side = "above" if found.gain > 0 else "below"
    return f"It is {abs(found.gain):.3f} {side} {what}{_aside(found)}, {cost}."


def _against_click_models(results: Results, metric: str) -> str:
    means = {
        name: _mean(results, name, metric) or 0.0
        for name in results.methods
        if name.startswith("click-model-")
    }
    if not means:
        return ""
    best = max(means, key=means.__getitem__)
    found = compare(results, best, metric)
    assert found is not None
    label = method(best).label.removeprefix("DNN, ")
    which = f"the best of {len(means)} click models" if len(means) > 1 else "a click model"
    if found.level:
        return f"The relevance of {label}, {which}, serves as well."
    side = "below" if found.gain > 0 else "above"
    return (
        f"Trained on the relevance of {label}, {which}, the same network is "
        f"{abs(found.gain):.3f} {side} DLA{_aside(found)}."
    )


def _against_initial(found: Comparison | None) -> str:
    if found is None:
        return ""
    before = f"The ranker whose lists were clicked on is at {found.other:.3f}"
    if found.level:
        return f"{before}: learning from these clicks changed nothing."
    if found.gain > 0:
        return f"{before}, so learning from its clicks added {found.gain:.3f}{_aside(found)}."
    choice = ": the old ranker is the better choice" if found.significant else ""
    return f"{before}, so learning from its clicks lost {-found.gain:.3f}{_aside(found)}{choice}."


def _against_oracle(found: Comparison | None) -> str:
    if found is None:
        return ""
    teacher = f"Trained on the judgements themselves, the same network reaches {found.other:.3f}"
    if found.level:
        return f"{teacher}, the same as DLA."
    if found.gain > 0:
        return f"{teacher}, {found.gain:.3f} below DLA{_aside(found)}."
    left = ": what is left to gain" if found.significant else ""
    return f"{teacher}, {-found.gain:.3f} above DLA{_aside(found)}{left}."


def _aside(found: Comparison) -> str:
    if found.p is None:
        return ""
    return f" ({'' if found.significant else 'not significant, '}{found.p_text})"


def _weights(results: Results) -> str:
    errors = {}
    for name in ("dla", "randlist"):
        values = [
            r.propensity.mse
            for r in results.of(name)
            if r.propensity and r.propensity.mse is not None
        ]
        if values:
            errors[name] = float(np.mean(values))
    if "dla" not in errors:
        return ""
    measured = f"; the measured ones have {errors['randlist']:.2g}" if "randlist" in errors else ""
    return (
        f"DLA's inverse propensity weights have a mean squared error of {errors['dla']:.2g} "
        f"against the true ones{measured}."
    )


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
