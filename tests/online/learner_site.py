"""A site whose learner is tested."""

from dataclasses import replace

import numpy as np

from dualrank.online.learner.learner import Learner, LearnerSettings
from dualrank.online.learner_record import LearnerRecord
from dualrank.online.versions import Versions

from .small_site import Events, make_data, sessions

SETTINGS = LearnerSettings(held_out=0.25, steps=60)
DATA = make_data()


class Judgment:
    """The judgment of a gate that finds a version better than another, or not clearly so."""

    can_tell = True

    def __init__(self, better):
        self.better = better

    def is_worse(self, errors=0.0):
        return False

    def is_better(self):
        return self.better

    def said(self, other):
        return f"against {other}"


class Site:
    """A folder of versions and one of events, under traffic."""

    def __init__(self, folder, model):
        self.versions = Versions.create(folder / "models", model)
        self.events = Events(folder / "events")
        self.rng = np.random.default_rng(1)

    def traffic(self, count=2_500, eta=1.0, **more):
        live = self.versions.load(self.versions.live.number)
        self.events.add(sessions(DATA, live.predict(DATA), count, self.rng, eta, **more))

    def learner(self, **changes):
        return Learner(self.versions, self.events, replace(SETTINGS, **changes), DATA)

    @property
    def alarms(self):
        return [(each.kind, each.said) for each in LearnerRecord.read(self.versions.folder).alarms]

    @property
    def rounds(self):
        return LearnerRecord.read(self.versions.folder).rounds
