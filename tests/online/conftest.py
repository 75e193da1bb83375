"""Sites whose learners are tested."""

import pytest

from .learner_site import DATA, Site
from .small_site import first_model


@pytest.fixture(scope="session")
def given():
    return first_model(DATA)


@pytest.fixture(scope="session")
def inverted():
    return first_model(DATA, seed=5, invert=True)


@pytest.fixture
def site(tmp_path, given):
    return Site(tmp_path, given)
