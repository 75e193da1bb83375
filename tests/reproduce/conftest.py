"""A simulation that the tests of experiments share."""

import pytest
import torch

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.data.generator import Preset, generate_splits
from dualrank.rankers.network import DNN
from dualrank.reproduce.simulation import simulate
from dualrank.reproduce.table_2_rows import Hyperparameters, Users
from dualrank.settings import TrainingSettings

torch.set_num_threads(1)

USER = PositionBasedUser()


@pytest.fixture(scope="session")
def splits():
    return generate_splits(Preset(features=12, train=200, valid=60, test=80), seed=0)


@pytest.fixture(scope="session")
def simulation(splits):
    return simulate(splits, seed=0)


@pytest.fixture(scope="session")
def users():
    return Users(training=USER, randomisation=USER)


@pytest.fixture(scope="session")
def chosen():
    settings = TrainingSettings(steps=60, batch_size=64, validate_every=20)
    return Hyperparameters(settings, DNN((8,)), C=10.0, randomised_sessions=50_000)
