"""Training on lists with counts against training on single sessions.

    python -m benchmarks.list_training [--race] [--plot docs/images/cost-growth.svg]

prints, on a log of 2,000 lists with as many sessions each as the paper's has:

- how far the full-batch gradients of the two are apart, in float64;
- what an epoch over lists costs, in epochs over sessions;
- how the epoch grows when the same lists are shown 10 and 100 times as often;

and with `--race`, on a log of the paper's size, how long it takes on lists to be as good as after
one epoch over single sessions: nDCG@10 on judged queries and the error of the propensities, for
three seeds. Times are processor seconds of one thread.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.log_reduction import FEATURES, LISTS, paper_log
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.corrections import DualLearning
from dualrank.corrections.position_models import PositionVariables
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.generator import World
from dualrank.data.lists import RankedLists
from dualrank.data.scaling import Scaler
from dualrank.evaluation.evaluator import Evaluator
from dualrank.evaluation.propensity_error import inverse_propensity_mse
from dualrank.learning import Feedback, LoggedClicks, Loop
from dualrank.rankers import DNN, Batch
from dualrank.report.drawing import LEGEND, new_figure, title
from dualrank.report.theme import LIGHT, svg_file
from dualrank.settings import TrainingSettings
from dualrank.storage import write_text

# The better of two rates that were tried, with the first seed.
FAST = TrainingSettings(steps=1_600, learning_rate=0.4, device="cpu")
SEEDS = (0, 1, 2)
JUDGED = 1_500
TIMED = 40
GROWTH = (1, 10, 100)
SMALL_LISTS = 2_000


class SingleSessions:
    """Every session of a log once, in random order, and then again."""

    def __init__(self, log: ClickLog) -> None:
        self.lists, self._log = log.lists, log
        self._cumulative = np.cumsum(log.counts)
        self._order = np.empty(0, dtype=np.int64)

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """The next sessions."""
        if len(self._order) == 0:
            self._order = rng.permutation(self._log.sessions)
        sessions, self._order = self._order[:size], self._order[size:]
        rows = np.searchsorted(self._cumulative, sessions, side="right")
        documents = self.lists.documents[self._log.list_of[rows]]
        return Batch(documents, self._log.clicks[rows].astype(np.float32), len(sessions))


class EveryList(DualLearning):
    """Dual learning that scores lists without a click too, as a loop over sessions would."""

    clicked_only = False


def loop(
    features: torch.Tensor,
    feedback: Feedback,
    settings: TrainingSettings,
    seed: int = 0,
    correction: type[DualLearning] = DualLearning,
) -> Loop:
    """Dual learning of the network that `train` learns."""
    network = DNN().build(features.shape[1], seed)
    return Loop(network, features, feedback, correction(feedback.lists.depth, settings), settings)


def gradient_difference(features: torch.Tensor, log: ClickLog) -> float:
    """The largest difference of a full-batch step on sessions and on lists, over its rate."""
    rows = np.repeat(np.arange(len(log.counts)), log.counts)
    shown = log.lists.documents
    batches = (
        Batch(shown[log.list_of[rows]], log.clicks[rows].astype(np.float64), len(rows)),
        Batch(shown, log.clicks_per_list.astype(np.float64), log.sessions),
    )
    settings = TrainingSettings(
        batch_size=len(rows), gradient_clip=1e9, learning_rate=1.0, device="cpu"
    )
    found = []
    for batch in batches:
        network = DNN((16,)).build(features.shape[1])
        network.weights = [weight.double() for weight in network.weights]
        network.biases = [bias.double() for bias in network.biases]
        network.weights[-1].normal_(generator=torch.Generator().manual_seed(1))
        phi = PositionVariables(log.lists.depth).double()
        torch.nn.init.normal_(phi.phi, generator=torch.Generator().manual_seed(2))
        dual = DualLearning(log.lists.depth, settings, phi)
        Loop(network, features.double(), _Always(log.lists, batch), dual, settings).step()
        learned = (*network.tensors().values(), phi.phi.detach())
        found.append(torch.cat([tensor.reshape(-1) for tensor in learned]))
    return float((found[0] - found[1]).abs().max())


class _Always:
    def __init__(self, lists: RankedLists, batch: Batch) -> None:
        self.lists, self._batch = lists, batch

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        return self._batch


def step_seconds(run: Loop) -> float:
    """The processor time of one step."""
    start = time.process_time()
    run.step()
    return time.process_time() - start


def say(text: str, holds: bool | None = None) -> bool:
    """Print a finding, and whether its limit holds."""
    print(text + ("" if holds is None else f": {'holds' if holds else 'FAILS'}"), flush=True)
    return holds is not False


def epoch_costs(features: torch.Tensor, log: ClickLog) -> bool:
    """An epoch over lists in epochs over sessions, with steps taken in turn."""
    settings = TrainingSettings(device="cpu")
    runs = [
        loop(features, feedback, settings, correction=correction)
        for feedback, correction in (
            (LoggedClicks(log), DualLearning),
            (SingleSessions(log), EveryList),
            (SingleSessions(log), DualLearning),
        )
    ]
    for run in runs:
        run.step()
    times = np.array([[step_seconds(run) for run in runs] for _ in range(TIMED)])
    scored, skipped = (float(np.median(times[:, 0] / times[:, i])) for i in (1, 2))
    clicked = runs[2].history.clicked / runs[2].history.drawn
    say(
        f"{log.sessions:,} sessions, {len(log.lists):,} lists; {clicked:.2f} of the sessions have "
        f"a click; {1e3 * np.median(times[:, 0]):.1f} ms for a step of {settings.batch_size} lists"
    )
    holds = say(
        f"epoch over lists / epoch over sessions = {scored:.2f} × lists/sessions, at most 1.15",
        scored <= 1.15,
    )
    say(
        f"where sessions without a click are not scored {skipped:.2f} × lists/sessions "
        "(such sessions cost nothing, but nearly every list has a click)"
    )
    return holds


def growth(data: Dataset, features: torch.Tensor, log: ClickLog, plot: Path | None) -> bool:
    """An epoch over the same lists, shown 1, 10 and 100 times as often."""
    lists, base = log.lists, log.sessions
    settings = TrainingSettings(device="cpu")
    logs = [sample_log(data, lists, PositionBasedUser(), base * factor, 0) for factor in GROWTH]
    runs = [loop(features, LoggedClicks(each), settings) for each in logs]
    single = loop(features, SingleSessions(logs[0]), settings)
    for run in (*runs, single):
        run.step()
    times = np.array([[step_seconds(run) for run in (*runs, single)] for _ in range(2 * TIMED)])
    ratios = np.median(times[:, : len(GROWTH)] / times[:, :1], axis=0)
    relative = ", ".join(
        f"{factor} × {ratio:.2f}" for factor, ratio in zip(GROWTH, ratios, strict=True)
    )
    if plot is not None:
        steps = len(lists) / settings.batch_size
        by_lists = np.median(times[:, : len(GROWTH)], axis=0) * steps
        by_sessions = np.median(times[:, -1]) * np.array(
            [each.sessions / settings.batch_size for each in logs]
        )
        draw_growth([each.sessions for each in logs], by_lists, by_sessions, plot)
    return say(
        f"epoch over {len(lists):,} lists with {base:,} sessions × factor, relative: {relative}; "
        "within 10%",
        bool(np.abs(ratios - 1).max() <= 0.1),
    )


def draw_growth(
    sessions: list[int], by_lists: np.ndarray, by_sessions: np.ndarray, path: Path
) -> None:
    """The time of an epoch against the sessions of the log, both logarithmic."""
    figure, (ax,) = new_figure(1)
    for values, color, marker, name in (
        (by_sessions, "vermilion", "s", "over single sessions (a step, times their number)"),
        (by_lists, "blue", "o", "over lists with counts"),
    ):
        ax.loglog(sessions, values, color=LIGHT[color], marker=marker, lw=1.8, label=name)
    ax.set_xlabel(f"sessions over the same {SMALL_LISTS:,} lists")
    title(ax, "Processor seconds of an epoch")
    ax.minorticks_off()
    ax.set_ylim(top=20 * by_sessions.max())
    ax.legend(loc="upper left", **LEGEND)
    write_text(path, svg_file(figure))


def quality(run: Loop, judged: Dataset, scaled: np.ndarray) -> tuple[float, float]:
    """nDCG@10, and the error of the learned propensities."""
    examination = run.correction.propensity().examination  # type: ignore[union-attr]
    truth = PositionBasedUser().examination(len(examination))
    found = Evaluator(judged, ["ndcg@10"])(run.ranker.predict(scaled))["ndcg@10"]
    return found, inverse_propensity_mse(examination, truth)


def race() -> bool:
    """One epoch over single sessions, with the rates of `train`, against `FAST` on lists."""
    data, log = paper_log()
    scaler = Scaler.fit(data.features)
    features = torch.from_numpy(scaler.transform(data.features))
    judged = World(FEATURES).generate(JUDGED, seed=1_002)
    scaled = scaler.transform(judged.features)
    found: dict[str, list[tuple[float, float, float]]] = {"sessions": [], "lists": []}
    whole = TrainingSettings(device="cpu")
    whole = replace(whole, steps=-(-log.sessions // whole.batch_size))
    for seed in SEEDS:
        settings = {"sessions": replace(whole, seed=seed), "lists": replace(FAST, seed=seed)}
        for name, how in settings.items():
            feedback = SingleSessions(log) if name == "sessions" else LoggedClicks(log)
            run = loop(features, feedback, how, seed)
            start = time.process_time()
            run.run()
            seconds = time.process_time() - start
            found[name].append((*quality(run, judged, scaled), seconds))
            value, error, _ = found[name][-1]
            say(
                f"seed {seed}, {name:<8} {how.steps:>6,} steps: nDCG@10 {value:.4f}, "
                f"propensity error {error:.4f}, {seconds:.0f} s"
            )
    sessions, lists = (np.array(found[name]) for name in ("sessions", "lists"))
    gain, error = lists[:, 0] - sessions[:, 0], lists[:, 1] / sessions[:, 1]
    share = float(lists[:, 2].sum() / sessions[:, 2].sum())
    say(
        f"lists against sessions: nDCG@10 {gain.mean():+.4f} (worst seed {gain.min():+.4f}), "
        f"propensity error × {error.mean():.2f} (worst seed {error.max():.2f})"
    )
    good = bool(gain.mean() >= 0 and lists[:, 1].mean() <= sessions[:, 1].mean())
    return say(f"at least as good in {share:.2f} of the time, at most 0.20", good and share <= 0.2)


def main() -> bool:
    """Print every finding; true if all limits hold."""
    torch.set_num_threads(1)
    words = sys.argv[1:]
    plot = Path(words[words.index("--plot") + 1]) if "--plot" in words else None
    data, log = paper_log(SMALL_LISTS / LISTS)
    features = torch.from_numpy(Scaler.fit(data.features).transform(data.features))
    some = log.take_lists(np.arange(400))
    apart = gradient_difference(features, some)
    results = [
        say(
            f"full-batch gradients of {some.sessions:,} sessions and of their {len(some.lists)} "
            f"lists differ by {apart:.1e}, at most 1e-12",
            apart <= 1e-12,
        ),
        epoch_costs(features, log),
        growth(data, features, log, plot),
    ]
    if "--race" in words:
        results.append(race())
    return all(results)


if __name__ == "__main__":
    sys.exit(not main())
