"""Sites whose learners are tested."""

import pytest

from dualrank.online.learner.version_contest import VersionContest

from .learner_site import DATA, Judgment, Site
from .small_site import first_model


@pytest.fixture(scope="session")
def given():
    return first_model(DATA)


@pytest.fixture(scope="session")
def inverted():
    return first_model(DATA, seed=5, invert=True)


@pytest.fixture
def never_worse(monkeypatch):
    """Let every version go live without an estimate, which is a third of the time of a round."""
    monkeypatch.setattr(VersionContest, "_judge", lambda *_: Judgment(better=False))


@pytest.fixture
def site(tmp_path, given):
    return Site(tmp_path, given)
