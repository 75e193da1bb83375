"""A trained ranker with all that is needed to use it, in memory and as a directory."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as array_files
from safetensors.torch import load, save
from torch import Tensor

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.feature_rows import by_query
from dualrank.data.frames import is_frame
from dualrank.data.inputs import rows_from
from dualrank.data.scaling import Scaler
from dualrank.errors import CheckpointError, DataError
from dualrank.learning.memory import LISTS, Memory
from dualrank.learning.model_card import (
    draw_learned,
    draw_training,
    histories_of,
    method_of,
    model_card,
)
from dualrank.learning.model_files import (
    FORMAT,
    MANIFEST,
    MEMORY,
    OPTIMIZERS,
    PROPENSITY,
    RANKER,
    digest_of,
    read_model_files,
)
from dualrank.learning.score_checks import name_by_row, name_in, require_finite
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.kinds import RANKERS
from dualrank.rankers.network import Network, check_sizes
from dualrank.rankers.ranker import Ranker, RankerSettings
from dualrank.sentences import reason_of, shortened
from dualrank.showing.axes import axes_for
from dualrank.showing.visible import one_line
from dualrank.storage import atomic_file, sha256_of_file, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DAMAGE = (
    *(DataError, ArithmeticError, AttributeError, LookupError),
    *(MemoryError, RuntimeError, TypeError, ValueError),
)
"""What a description that nobody wrote so ends in."""


@dataclass(frozen=True, eq=False)
class Model:
    """A ranker, the scaling of its features, and the propensity that it was trained with."""

    ranker: Ranker
    scaler: Scaler
    propensity: Propensity | None = None
    feature_names: tuple[str, ...] | None = None
    training: dict[str, Any] = field(default_factory=dict)
    """How it was trained: the plan, fingerprint of the data, validation curve."""
    kind: str = "dnn"
    """The kind of ranker, by which a model directory is read again."""
    optimizers: dict[str, Tensor] = field(default_factory=dict)
    """What the optimisers of ranker and belief hold beside what was learned, for `update`."""
    memory: Memory | None = None
    """Lists that it learned from, for `update`."""

    def __repr__(self) -> str:
        return (
            f"Model({one_line(method_of(self))}, {self.kind}, {self.scaler.input_count} features)"
        )

    def _repr_html_(self) -> str:
        """A card for notebooks: what it is, its examination curve, and its lead."""
        return model_card(self)

    def plot(
        self, ax: Axes | None = None, what: Literal["examination", "training"] | None = None
    ) -> Axes:
        """Draw the examination that it learned, or how it did on validation while in `training`.

        Without `what`, the first of the two that the model has: some methods learn no examination.
        Needs matplotlib.
        """
        histories = histories_of(self.training)
        if what is None:
            what = "training" if self.propensity is None and histories else "examination"
        if what == "examination" and self.propensity is None:
            raise DataError(f"a model of method {method_of(self)} has no examination to draw")
        if what == "training" and not histories:
            raise DataError(
                "this model keeps no validation curve: nothing was held out to follow it"
            )
        ax = axes_for(ax)
        if what == "examination":
            draw_learned(ax, self)
        else:
            draw_training(ax, histories)
        return ax

    def predict(self, data: Dataset | NDArray[np.floating] | Any) -> NDArray[np.float32]:
        """One score per document, in the order that they are given in; higher is better.

        Of a data frame, or a data set with names, the features are taken that the model knows by
        name, in its own order. A frame has a row per document, and needs `query_id` only for
        rankers that see whole lists. A score that is not finite is an error.
        """
        if is_frame(data):
            return self._predict_rows(data)
        if isinstance(data, Dataset):
            features = data.with_features(self.feature_names).features
            return self._predict(features, data.offsets, partial(name_in, data))
        try:
            features = np.asarray(data, np.float32)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"features are a Dataset, a data frame or a matrix of numbers ({error})"
            ) from error
        return self._predict(features, None)

    def _predict_rows(self, frame: Any) -> NDArray[np.float32]:
        rows = rows_from(frame, names=self.feature_names, count=self.scaler.input_count)
        if not self.ranker.by_list or rows.queries is None:
            return self._predict(rows.matrix, None)
        order = by_query(rows.queries)
        queries = rows.queries[order]
        starts = np.flatnonzero(np.r_[True, queries[1:] != queries[:-1]])
        scores = np.empty(len(order), np.float32)
        scores[order] = self._predict(
            rows.matrix[order], np.append(starts, len(order)), lambda row: name_by_row(order[row])
        )
        return scores

    def _predict(
        self,
        features: NDArray[np.float32],
        offsets: NDArray[np.int64] | None,
        name: Callable[[int], str] = name_by_row,
    ) -> NDArray[np.float32]:
        if offsets is None and self.ranker.by_list:
            raise DataError(
                "this ranker sees whole lists: give a Dataset, or a data frame with query_id"
            )
        if features.ndim != 2:
            raise DataError(f"features must be a matrix, not of {features.ndim} dimensions")
        if not self.ranker.takes_missing:
            require_values(features, self.feature_names, self.kind)
        scaled = self.scaler.transform(features)
        scores = self.ranker.predict(scaled, offsets)
        require_finite(scores, features, scaled, self, name)
        return scores

    def update(self, log: ClickLog | Any, dataset: Dataset | Any, **options: Any) -> Model:
        """The model after it has learned from new clicks too; see `dualrank.learning.update`."""
        from dualrank.learning.update import update_model

        return update_model(self, log, dataset, **options)

    def remember(
        self, log: ClickLog | Any, dataset: Dataset | Any, *, memory: int = LISTS, seed: int = 0
    ) -> Model:
        """The model with a memory of the log that it was trained on, of at most so many lists.

        `update` learns from what is remembered once more, so that it is not forgotten.
        """
        from dualrank.learning.update import with_memory

        return with_memory(self, log, dataset, memory, seed)

    def save(self, directory: str | Path) -> None:
        """Write the model directory; its manifest, written last, vouches for the other files."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(folder / RANKER) as file:
            file.write(save({k: v.contiguous() for k, v in self.ranker.tensors().items()}))
        files = [RANKER]
        held = {OPTIMIZERS: self.optimizers, MEMORY: self.memory}
        for name, what in held.items():
            if not what:
                (folder / name).unlink(missing_ok=True)
                continue
            with atomic_file(folder / name) as file:
                if isinstance(what, Memory):
                    file.write(array_files.save(what.arrays()))
                else:
                    file.write(save({k: v.contiguous() for k, v in what.items()}))
            files.append(name)
        if self.propensity is None:
            (folder / PROPENSITY).unlink(missing_ok=True)
        else:
            self.propensity.write(folder / PROPENSITY)
            files.append(PROPENSITY)
        manifest = {
            "format": FORMAT,
            "ranker": {"kind": self.kind, **self.ranker.describe()},
            "scaler": self.scaler.to_dict(),
            "feature_count": self.scaler.input_count,
            "feature_names": self.feature_names,
            "training": self.training,
            "sha256": {name: sha256_of_file(folder / name) for name in files},
        }
        manifest["digest"] = digest_of(manifest)
        write_text(folder / MANIFEST, json.dumps(manifest, indent=1) + "\n")

    @classmethod
    def load(cls, directory: str | Path, *, ranker: type[RankerSettings] | None = None) -> Model:
        """Read a model directory and verify every file against the manifest.

        `ranker` are the settings of a ranker that is not dualrank's own, which restore it.
        """
        folder = Path(directory)
        manifest, contents = read_model_files(folder)
        description = dict(manifest["ranker"])
        kind = str(description.pop("kind", "dnn"))
        settings = ranker or RANKERS.get(kind)
        if settings is None or settings.kind != kind:
            raise CheckpointError(
                f"{folder}: a ranker of kind {shortened(kind)}, which is not one of "
                f"{', '.join(RANKERS)}; whoever wrote it has the settings that restore it"
            )
        names = manifest["feature_names"]
        try:
            scaler = Scaler.from_dict(manifest["scaler"])
            _check_names(names, manifest.get("feature_count"), scaler)
            if settings is RANKERS.get(kind):
                _check_shape(description, settings, scaler.output_count, len(contents[RANKER]))
            restored = settings.restore(description)
            restored.predict(np.zeros((1, scaler.output_count), np.float32))
        except _DAMAGE as error:
            raise CheckpointError(f"{folder / MANIFEST}: damaged: {reason_of(error)}") from error
        try:
            restored.load_tensors(load(contents[RANKER]))
        except (SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{folder / RANKER}: not this model's weights") from error
        if not restored.is_finite():
            raise CheckpointError(
                f"{folder / RANKER}: holds weights that are no finite numbers: it ranks nothing, "
                "train again"
            )
        propensity = None
        if PROPENSITY in contents:
            try:
                propensity = Propensity.from_json(contents[PROPENSITY])
            except DataError as error:
                raise CheckpointError(
                    f"{folder / PROPENSITY}: damaged: {reason_of(error)}"
                ) from error
        return cls(
            ranker=restored,
            scaler=scaler,
            propensity=propensity,
            feature_names=None if names is None else tuple(names),
            training=manifest["training"],
            kind=kind,
            optimizers=_optimizers(folder, contents.get(OPTIMIZERS)),
            memory=_memory(folder, contents.get(MEMORY), scaler.input_count),
        )


def _optimizers(folder: Path, content: bytes | None) -> dict[str, Tensor]:
    """What optimisers hold; whether it fits is known when a training goes on with it."""
    if content is None:
        return {}
    try:
        found: dict[str, Tensor] = load(content)
    except (SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{folder / OPTIMIZERS}: damaged: {reason_of(error)}") from error
    for name, tensor in found.items():
        least = 0.0 if ".sum." in name else -math.inf
        if not (tensor.is_floating_point() and bool(((tensor > least) & tensor.isfinite()).all())):
            raise CheckpointError(
                f"{folder / OPTIMIZERS}: damaged: {shortened(name)} holds what no optimiser does"
            )
    return found


def _memory(folder: Path, content: bytes | None, features: int) -> Memory | None:
    """What is remembered."""
    if content is None:
        return None
    try:
        return Memory.of_arrays(array_files.load(content), features)
    except (SafetensorError, *_DAMAGE) as error:
        raise CheckpointError(f"{folder / MEMORY}: damaged: {reason_of(error)}") from error


def require_values(features: NDArray[np.floating], names: Sequence[str] | None, kind: str) -> None:
    """Refuse missing values, for a ranker of a kind that needs all of them."""
    missing = np.isnan(features)
    if missing.any():
        raise DataError(missing_values(missing.sum(axis=0), len(features), names, kind))


def missing_values(
    missing: NDArray[np.number], documents: int, names: Sequence[str] | None, kind: str
) -> str:
    """The sentence against features of which so many values are missing."""
    column = int((missing > 0).argmax())
    name = repr(names[column]) if names else column + 1
    return (
        f"feature {name} is missing in {int(missing[column])} of {documents} documents; a ranker "
        f"of kind {kind} needs all values: fill them, or train trees"
    )


def _check_shape(
    description: dict[str, Any], settings: type[RankerSettings], inputs: int, room: int
) -> None:
    """Refuse a ranker of dualrank's own that would be larger than its file, or knows too much."""
    if settings.makes is Network:
        check_sizes(description["sizes"], inputs, room)
    elif description["inputs"] != inputs:
        raise ValueError("its ranker knows other features than its scaling")


def _check_names(names: list[Any] | None, count: Any, scaler: Scaler) -> None:
    """Refuse names of other features than those that were scaled."""
    if count not in (None, scaler.input_count):
        raise ValueError(f"it has {count} features, and its scaling {scaler.input_count}")
    if names is None:
        return
    if len(names) != scaler.input_count or not all(isinstance(name, str) for name in names):
        raise ValueError(f"it does not name each of its {scaler.input_count} features")
