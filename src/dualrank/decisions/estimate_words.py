"""What estimators and metrics are called, and what each means, in a sentence."""

from __future__ import annotations

ESTIMATORS = {
    "doubly-robust": (
        "Doubly robust",
        "The model of relevance, mended by what clicks say beyond it. Right where the curve is "
        "right and either the model is, or what the new ranking shows was displayed. The verdict "
        "goes by this one; where the affine one is shown, the two must agree.",
    ),
    "direct": (
        "Direct",
        "Relevance told by the features, fitted to the clicks of other queries. Takes the features "
        "to tell relevance, and needs no display of what the new ranking shows.",
    ),
    "ips": (
        "Inverse propensity",
        "Every click counts as much as its position is rarely examined. Right where the curve is, "
        "and where all that the new ranking shows was displayed: what never was counts as nothing.",
    ),
    "self-normalised": (
        "Self-normalised",
        "Inverse propensity, where what was never displayed counts as the mean of what was. Less "
        "noisy, a little biased where few were displayed.",
    ),
    "clipped": (
        "Clipped",
        "Inverse propensity with a limit on what one click may weigh. Less noisy, and biased "
        "towards what the log displayed at the top.",
    ),
    "affine": (
        "Affine",
        "Inverse propensity after what users click for standing on top, relevant or not, was taken "
        "off. Only where the log shows such trust; takes the model of it to be right.",
    ),
}
"""In the order in which they are shown: the label, then what it does and assumes."""

METRICS = {
    "clicks": ("Clicks per session", "How many results a session clicks."),
    "dcg": ("Clicked DCG", "Clicks, each counted as 1/log₂(rank + 1): high ranks count more."),
    "precision@1": ("Precision at 1", "How often the first result is clicked."),
    "first-click": (
        "Reciprocal rank of the first click",
        "1 where the first result is clicked, 1/2 where the second is the first to be, and so on; "
        "takes clicks of a session to be independent of each other.",
    ),
}
WEIGHED = {
    "clicks": ("Value per session", "What the events of a session are worth together."),
    "dcg": ("DCG of values", "Values, each counted as 1/log₂(rank + 1): high ranks count more."),
    "precision@1": ("Value at 1", "What the events on the first result are worth."),
}
"""The metrics where events have weights."""


def estimator_label(name: str) -> str:
    """The estimator as people write it; one that is not known under its own name."""
    return ESTIMATORS[name][0] if name in ESTIMATORS else name


def in_a_sentence(label: str) -> str:
    """A label that begins with a capital, as part of a sentence.

    >>> in_a_sentence("Clicks per session"), in_a_sentence("DCG of values")
    ('clicks per session', 'DCG of values')
    """
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def metric_terms(names: list[str], *, weighed: bool) -> dict[str, tuple[str, str]]:
    """Label and meaning of these metrics, in the order of the list above."""
    known = WEIGHED if weighed else METRICS
    return {name: known.get(name, (name, "")) for name in [*known, *names] if name in names}


def ends_kept(text: str, longest: int = 40) -> str:
    """An id that may be long: the middle is left out, since addresses begin and titles end alike.

    >>> ends_kept("short"), ends_kept("https://example.org/a/b/c.html", 17)
    ('short', 'https://ex…c.html')
    """
    if len(text) <= longest:
        return text
    after = (longest - 1) * 3 // 8
    return f"{text[: longest - 1 - after]}…{text[-after:]}"
