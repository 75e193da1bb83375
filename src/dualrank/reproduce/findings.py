"""What the numbers say, in sentences that are computed and never assumed."""

from __future__ import annotations

import numpy as np

from dualrank.certainty import LEVEL
from dualrank.report import (
    Results,
    main_metric,
    method,
    metric_label,
    ordered_methods,
    p_in_words,
    setting_label,
    sweep_curve,
)

POSITION_BASED = (
    "The clicks were simulated, by users who behave exactly as the position-based model assumes. A "
    "gain on simulated clicks is not a gain on your users: real users also click by habit, by "
    "trust in the top result and by looks. Judge a ranker learned from your log on judged queries "
    "or in an online test before you rely on it."
)


def findings(results: Results) -> list[str]:
    """The most important first; empty where there is nothing to compare."""
    metric = main_metric(results)
    if metric is None:
        return []
    dla = _mean(results, "dla", metric)
    if dla is None:
        return _without_dla(results, metric)
    # What each is called, and what follows where DLA is significantly worse.
    others = {
        "naive": ("uncorrected clicks", ": the correction did harm"),
        "randlist": ("propensities measured by shuffling results, which DLA does without", ""),
        **_best_click_model(results, metric),
        "initial": ("the ranker whose lists were clicked on", ": it is the better choice"),
        "oracle": ("the same network trained on the judgements", ": what is left to gain"),
    }
    sentences = []
    for name, (called, harm) in others.items():
        if (mean := _mean(results, name, metric)) is None:
            continue
        numbers = f"{dla:.3f} against {mean:.3f}"
        if abs(dla - mean) < 0.0005:
            sentences.append(
                f"DLA reaches the same {metric_label(metric)} as {called} ({numbers})."
            )
            continue
        tested, is_significant = _tested(results, name, metric)
        side = "above" if dla > mean else "below"
        sentences.append(
            f"DLA is {abs(dla - mean):.3f} {metric_label(metric)} {side} {called} "
            f"({numbers}; {tested}){harm if is_significant and dla < mean else ''}."
        )
    if not sentences:
        sentences.append(f"DLA reaches {dla:.3f} {metric_label(metric)}.")
    return [*sentences, *_weights(results), over_how_many_seeds(results)]


def _tested(results: Results, name: str, metric: str) -> tuple[str, bool]:
    """The test of a method against DLA in words, and whether it found a difference."""
    test = results.significance
    p = test.get("p_values", {}).get(name, {}).get(metric)
    if p is None or test.get("reference", "dla") != "dla":
        return "not tested", False
    is_significant = p <= test.get("alpha", LEVEL)
    p_text = p_in_words(p, 3)
    is_below = p_text.startswith("<")
    said = f"p {p_text}" if is_below else f"p = {p_text}"
    return f"{'' if is_significant else 'not '}significant, {said}", is_significant


def _best_click_model(results: Results, metric: str) -> dict[str, tuple[str, str]]:
    """The one with the highest mean, where there are some."""
    names = [name for name in results.methods if name.startswith("click-model-")]
    if not names:
        return {}
    best = max(names, key=lambda name: _mean(results, name, metric) or 0.0)
    which = f", the best of {len(names)} click models" if len(names) > 1 else ""
    label = method(best).label.removeprefix("DNN, ")
    return {best: (f"the same network trained on the relevance of {label}{which}", "")}


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
    metric, sign = main_metric(results), setting_label(swept)
    sentences: list[str] = []
    if metric is None:
        return sentences
    for name in ordered_methods(results):
        curve = sweep_curve(results.of(name), swept, metric)
        if curve is None:
            continue
        values, (means, _, _) = curve
        low, high = means.argmin(), means.argmax()
        sentences.append(
            f"{method(name).label}: {metric_label(metric)} from {means[low]:.3f} "
            f"({sign} = {values[low]:g}) to {means[high]:.3f} ({sign} = {values[high]:g})."
        )
    return [*sentences, over_how_many_seeds(results)] if sentences else []


def _mean(results: Results, name: str, metric: str) -> float | None:
    values = [run.metrics[metric] for run in results.of(name) if metric in run.metrics]
    return float(np.mean(values)) if values else None
