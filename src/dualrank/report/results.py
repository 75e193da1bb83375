"""What an experiment leaves behind: `results.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from dualrank.errors import DataError
from dualrank.storage import read_json, write_text

MOST_BYTES = 1 << 30


class PropensityResult(BaseModel):
    """The examination curve that a run used or learned (first = 1), and its error.

    `mse` is the paper's mean squared error of the inverse propensity weights; it is None where
    the truth is not known.
    """

    model_config = ConfigDict(extra="allow")

    examination: list[float]
    mse: float | None = None


class Run(BaseModel):
    """One method, one seed, one setting. A swept value such as `eta` is an extra key."""

    model_config = ConfigDict(extra="allow")

    method: str
    seed: int
    metrics: dict[str, float]
    propensity: PropensityResult | None = None
    seconds: float


class Results(BaseModel):
    """All runs of an experiment with what is needed to understand and repeat it."""

    experiment: str
    settings: dict[str, Any]
    runs: list[Run]
    significance: dict[str, Any] = {}

    def of(self, method: str) -> list[Run]:
        """The runs of one method, in the order of their seeds."""
        return sorted((r for r in self.runs if r.method == method), key=lambda r: r.seed)

    @property
    def methods(self) -> list[str]:
        """The methods in the order in which they first ran."""
        return list(dict.fromkeys(run.method for run in self.runs))

    def write(self, path: Path) -> None:
        """Write as indented JSON."""
        write_text(path, self.model_dump_json(indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read what `write` wrote."""
        content = read_json(path, most=MOST_BYTES)
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "it"
            raise DataError(
                f"{path}: not the results of an experiment: {where}: {first['msg']}"
            ) from error
