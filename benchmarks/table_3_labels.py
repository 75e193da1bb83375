"""Why click models come out as they do in Table 3: their labels, or what is made of them?

Run as `python -m benchmarks.table_3_labels [SEEDS] [USERS]`, on the small web with the skewed log
of `dualrank reproduce click-models`; SEEDS are 2 and USERS ubm,dbn unless given. Printed are, for
each kind of users and in the mean over seeds,

- how labels go with the users' true attraction: their correlation within lists (every session
  counts), and how many times higher they are for pages of grade 0 on the last rank than on the
  first, where 1 is right; with priors of several strengths;
- nDCG@10 on test queries of the network of Table 3 trained on each label: with lists drawn as often
  as they were displayed, or each as often; and keeping of its steps the one with the best
  discounted relevance on held-out lists by their sessions, with the least loss on held-out lists
  each counting once, or the last. The method `click-model` has each list once, and the loss.
  `shown` is that step's nDCG@10 if only the ten pages that the engine would show are ranked.

`clicks given UBM` is no label: the likelihood of where clicks fell, softmax(f + log e), with the
mean examination e of each rank of each list that UBM reads off the log. True α s are those of DBN
users.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import dualrank as dr
from dualrank.clicks import ClickModel, Prior, click_model
from dualrank.clicks.user import perceived_relevance
from dualrank.corrections import Naive, softmax_signal
from dualrank.data.scaling import Scaler
from dualrank.evaluation.click_check import hold_out
from dualrank.learning import Labelled, Loop
from dualrank.learning.extracted_relevance import scaled_to_clicks
from dualrank.learning.validation import Measure
from dualrank.rankers import Ranker, Shown, Signal
from dualrank.reproduce.search_engine import (
    DEPTH,
    Log,
    SearchData,
    display,
    simulate_log,
    users_of,
)
from dualrank.reproduce.table_3 import HELD_OUT, HYPERPARAMETERS, SCALING
from dualrank.reproduce.text_collection import TextCollection, engine_scores

Floats = NDArray[np.floating]
USERS = "ubm,dbn"
PRIORS = (Prior(0.5), Prior(10.0), Prior(2.0, 0.5))
YARDSTICKS = ("discount", "loss", "last")


class GivenExamination(Naive):
    """Clicks fall by softmax(f + log e), where log e is the ground of the lists."""

    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """The loss of the clicks; without a ground that of labels."""
        utilities = scores if shown.ground is None else scores + shown.ground
        return softmax_signal(utilities, shown.labels, shown)


@dataclass
class Steps:
    """What is known of a ranker at each step that could be kept."""

    held_out: dr.ClickLog
    labels: Floats
    ground: NDArray[np.float32] | None
    features: NDArray[np.float32]
    test: dr.Dataset
    test_features: NDArray[np.float32]

    @cached_property
    def unseen(self) -> NDArray[np.bool_]:
        """Test documents that the engine would not show."""
        best = dr.top_lists(self.test, engine_scores(self.test), DEPTH)
        return ~np.isin(np.arange(self.test.document_count), best.documents)

    def __post_init__(self) -> None:
        self.found: list[dict[str, float]] = []
        lists = self.held_out.lists
        once = np.ones(len(lists), np.int64)
        feedback = Labelled(lists, self.labels, once, ground=self.ground)
        self._shown = feedback.everything(1, np.random.default_rng(0)).to(torch.device("cpu"))

    def measuring(self, ranker: Ranker) -> Measure:
        """What observes a ranker as it learns."""
        return lambda: self.measure(ranker)

    def measure(self, ranker: Ranker) -> list[float]:
        """Both yardsticks, and nDCG@10 on test queries."""
        lists = self.held_out.lists
        scores = ranker.predict_lists(self.features, lists)
        order = np.argsort(np.where(lists.mask, -scores, np.inf), axis=1, kind="stable")
        ranks = np.argsort(order, axis=1)
        sessions = self.held_out.sessions_per_list[:, None]
        loss = GivenExamination().signal(torch.from_numpy(scores), self._shown).loss
        predicted = ranker.predict(self.test_features, self.test.offsets)
        below = np.where(self.unseen, predicted.min() - 1, predicted)
        self.found.append(
            {
                "discount": float((sessions * self.labels / np.log2(ranks + 2)).sum()),
                "loss": -float(loss),
                "last": float(len(self.found)),
                "ndcg": dr.evaluate(predicted, self.test, ["ndcg@10"])["ndcg@10"],
                "shown": dr.evaluate(below, self.test, ["ndcg@10"])["ndcg@10"],
            }
        )
        return [0.0]

    def value(self, measured: list[float]) -> float:
        """Nothing is kept on the way."""
        return measured[0]

    def doubt(self, measured: list[float], other: list[float]) -> float:
        """None is known."""
        return 0.0

    def kept(self) -> list[float]:
        """nDCG@10 of the steps that are the best by each yardstick, and that of shown pages."""
        best = {by: max(self.found, key=itemgetter(by)) for by in YARDSTICKS}
        return [*(step["ndcg"] for step in best.values()), best["loss"]["shown"]]


@dataclass
class Stand:
    """One log, and what its users find attractive."""

    data: SearchData
    log: dr.ClickLog
    seed: int

    @classmethod
    def of(cls, user: str, seed: int) -> Stand:
        """As `dualrank reproduce click-models --user …` makes it."""
        data = display(TextCollection().load(seed), seed)
        log = simulate_log(data, users_of(user), Log(50, popularity=True), seed)
        return cls(data, log, seed)

    def truth(self, epsilon: float = 0.1) -> Floats:
        """The attraction of every document."""
        grades = self.data.train.require_grades()
        return perceived_relevance(grades, self.data.train.max_grade, epsilon)

    def of_model(self, model: ClickModel, parameter: str | None = None) -> Floats:
        """A label for every document, 0 for those that nobody saw."""
        found = model.relevance_of_pairs() if parameter is None else model.fitted.pairs[parameter]
        labels = np.zeros(self.data.train.document_count)
        labels[: len(found.values)] = np.where(model.fitted.observations > 0, found.values, 0)
        return labels

    def labels(self) -> dict[str, Floats]:
        """What click models take for relevance, and parts of it."""
        dbn = click_model("dbn").fit(self.log)
        names = ("ubm", "pbm", "document-ctr")
        return {
            **{name: self.of_model(click_model(name).fit(self.log)) for name in names},
            "dbn": self.of_model(dbn),
            "dbn:attraction": self.of_model(dbn, "attraction"),
            "dbn:satisfaction": self.of_model(dbn, "satisfaction"),
        }

    def under_priors(self) -> dict[str, Floats]:
        """Labels of models whose priors are weaker and stronger, or have a mean of one half."""
        found = {}
        for prior in PRIORS:
            what = f"prior {prior.strength:g}" + ("" if prior.mean is None else ", mean 0.5")
            dbn = click_model("dbn", prior).fit(self.log)
            found[f"ubm, {what}"] = self.of_model(click_model("ubm", prior).fit(self.log))
            found[f"dbn:attraction, {what}"] = self.of_model(dbn, "attraction")
            found[f"dbn, {what}"] = self.of_model(dbn)
        return found

    def agreement(self, label: Floats) -> tuple[float, float]:
        """The correlation with the truth within lists, and how bad pages gain down the list."""
        lists, sessions = self.log.lists, self.log.sessions_per_list[:, None]
        weight = np.where(lists.mask, sessions, 0)
        ours, true = (lists.gather(each).astype(float) for each in (label, self.truth()))
        bad = weight * (lists.gather(self.data.train.require_grades()) == 0)
        of_bad = (bad * ours).sum(axis=0) / bad.sum(axis=0)

        def centred(values: Floats) -> Floats:
            mean = (values * lists.mask).sum(axis=1) / lists.mask.sum(axis=1)
            return np.where(lists.mask, values - mean[:, None], 0)

        a, b = centred(ours), centred(true)
        together = (weight * a * b).sum()
        correlation = together / np.sqrt((weight * a * a).sum() * (weight * b * b).sum())
        return float(correlation), float(of_bad[-1] / of_bad[0])

    def taught(
        self, label: Floats | None, log: dr.ClickLog
    ) -> tuple[Floats, NDArray[np.float32] | None]:
        """What is learned from a part of the log, and its ground: labels, or clicks given UBM."""
        if label is None:
            model = click_model("ubm").fit(self.log)
            return given(model.fitted.shared["examination"], log)
        return log.lists.gather(scaled_to_clicks(label.astype(np.float32), self.log)), None

    def train(self, label: Floats | None, *, by_sessions: bool) -> Steps:
        """The network of Table 3, on a label or on clicks given UBM's examination."""
        train, test = self.data.train, self.data.test
        scaler = Scaler.fit(train.features, kind=SCALING)
        features = scaler.transform(train.features)
        rest, held_out = hold_out(self.log, HELD_OUT, self.seed)
        assert held_out is not None
        labels, ground = self.taught(label, rest)
        weights = rest.sessions_per_list if by_sessions else np.ones(len(rest.lists), np.int64)
        judged = self.taught(label, held_out)
        steps = Steps(held_out, *judged, features, test, scaler.transform(test.features))
        Loop(
            HYPERPARAMETERS.ranker.build(scaler.output_count, self.seed),
            torch.from_numpy(features),
            Labelled(rest.lists, labels, weights, ground=ground),
            GivenExamination(),
            HYPERPARAMETERS.with_training(seed=self.seed).training,
            validation=steps,
        ).run()
        return steps


def given(curve: Floats, log: dr.ClickLog) -> tuple[Floats, NDArray[np.float32]]:
    """Mean clicks of every list, and log e of its ranks by UBM: means over its sessions."""
    depth, sessions = log.lists.depth, np.maximum(log.sessions_per_list, 1)[:, None]
    clicked = np.where(log.clicks, np.arange(1, depth + 1), 0)
    above = np.hstack([np.zeros((len(clicked), 1), int), clicked[:, :-1]])
    examined = curve[np.arange(depth), np.maximum.accumulate(above, axis=1)]
    sums = np.zeros((len(log.lists), depth))
    np.add.at(sums, log.list_of, log.counts[:, None] * examined)
    return log.clicks_per_list / sessions, np.log(sums / sessions).astype(np.float32)


def trials(stand: Stand, labels: dict[str, Floats], user: str) -> dict[str, Floats | None]:
    """What networks are trained on."""
    names = ("ubm", "dbn", "dbn:attraction")
    true = {"true α": stand.truth()}
    if user == "dbn":
        true["true α s"] = stand.truth() * stand.truth(epsilon=0)
    return {**true, **{name: labels[name] for name in names}, "clicks given UBM": None}


def show(title: str, columns: tuple[str, ...], rows: dict[str, list[Any]]) -> None:
    """A table of means over seeds."""
    print(f"\n{title:<28}" + "".join(f"{column:>12}" for column in columns))
    for name, found in rows.items():
        print(f"{name:<28}" + "".join(f"{value:>12.3f}" for value in np.mean(found, axis=0)))


def main() -> None:
    """Print the tables of every kind of users."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    torch.set_num_threads(1)
    for user in (sys.argv[2] if len(sys.argv) > 2 else USERS).split(","):
        agreement: dict[str, list[Any]] = {}
        quality: dict[str, list[Any]] = {}
        for seed in range(seeds):
            stand = Stand.of(user, seed)
            labels = stand.labels()
            for name, label in {**labels, **stand.under_priors()}.items():
                agreement.setdefault(name, []).append(stand.agreement(label))
            for name, trial in trials(stand, labels, user).items():
                for by_sessions, drawn in ((True, "by sessions"), (False, "each once")):
                    steps = stand.train(trial, by_sessions=by_sessions)
                    quality.setdefault(f"{name}, {drawn}", []).append(steps.kept())
        show(f"{user} users: labels", ("correlation", "bad pages"), agreement)
        show(f"{user} users: nDCG@10, kept by", (*YARDSTICKS, "shown"), quality)


if __name__ == "__main__":
    main()
