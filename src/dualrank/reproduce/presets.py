"""The hyper-parameters that go with the generator's presets."""

from __future__ import annotations

from dualrank.errors import SettingsError
from dualrank.rankers.network import DNN
from dualrank.reproduce.methods import Recipe
from dualrank.settings import TrainingSettings

RECIPES = {
    "tiny": Recipe(TrainingSettings(steps=300), DNN((32,)), randomised_sessions=100_000),
    "laptop": Recipe(TrainingSettings(steps=4_000), DNN((256, 128))),
    "full": Recipe(TrainingSettings(steps=10_000), DNN((512, 256, 128))),
}


def recipe_of(preset: str) -> Recipe:
    """The recipe of a preset."""
    if preset not in RECIPES:
        raise SettingsError(f"unknown preset {preset!r}; known are {', '.join(RECIPES)}")
    return RECIPES[preset]
