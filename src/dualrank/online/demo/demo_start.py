"""Where a demo begins: a model that has seen little, and how good it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.lists import top_lists
from dualrank.learning.fit import fit
from dualrank.learning.model import Model
from dualrank.online.demo.demo_habits import Start
from dualrank.online.demo.demo_world import DEPTH, DemoWorld
from dualrank.rankers.network import DNN

SESSIONS = 1_000
"""As many as a new service has on its first evening."""
HIDDEN = (32,)
STEPS = 200


def first_model(world: DemoWorld, user: PositionBasedUser) -> Model:
    """A model of the first sessions, in which documents stood in no order."""
    data = world.dataset
    rng = np.random.default_rng([world.seed, 0x_F1])
    lists = top_lists(data, rng.random(data.document_count), DEPTH)
    log = sample_log(data, lists, user, SESSIONS, rng)
    # No grades: what is trained must not be able to look at them.
    unjudged = data.with_grades(None)
    asked: dict[str, Any] = {"validation": 0.0, "steps": STEPS, "seed": world.seed}
    model = fit(log, unjudged, method="dla", ranker=DNN(hidden=HIDDEN), **asked)
    return model.remember(log, unjudged)


def start_of(world: DemoWorld, model: Model) -> Start:
    """What the page compares with for ever: the curve and the quality of the first model."""
    data = world.dataset
    lists = top_lists(data, model.predict(data.with_grades(None)), DEPTH)
    curve = [] if model.propensity is None else model.propensity.examination.tolist()
    return Start(curve, world.quality(lists).tolist())
