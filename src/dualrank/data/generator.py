"""Web-search-shaped data, so that every experiment runs with no download.

A *world* is what relevance is made of: a teacher, a map from hidden factors to features, and the
thresholds that turn utility into grades. It has its own seed, apart from that of the data, so
that training, validation and test queries, and several data sets, come from one world. All its
standardisers, thresholds and feature distributions are measured on a calibration sample of the
world, never on the data.

Every document has k hidden factors ``z = √0.3 · z_query + √0.7 · z_document`` and the utility

    u = 0.8 · linear(z) + 0.7 · nonlinear(z) + 1.5 · b_query + 1.3 · noise,

cut into grades 0 to 4 at the shares of the Yahoo! LETOR set 1. The features show the factors only
through noisy, bent projections, so no feature gives relevance away and a linear model cannot see
all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset, Splits
from dualrank.errors import SettingsError
from dualrank.progress import shows_progress

FACTORS = 10
GRADE_SHARES = (0.26, 0.36, 0.28, 0.08, 0.02)
MEAN_DOCUMENTS = 24
CALIBRATION_QUERIES = 2_000
QUANTILES = 512
QUERIES_PER_BLOCK = 512

Floats = NDArray[Any]

# How a document feature bends its projection, and the share of features that do so.
TRANSFORMS: tuple[tuple[float, Callable[[Floats], Floats]], ...] = (
    (0.30, lambda t: t),
    (0.15, np.exp),
    (0.20, lambda t: 1 / (1 + np.exp(-4 * t))),
    (0.15, lambda t: np.maximum(t, 0)),
    (0.10, np.square),
    (0.10, lambda t: np.sin(2 * t)),
)
NOISE_SHARE = 0.15
QUERY_SHARE = 0.10


@dataclass(frozen=True)
class Preset:
    """How large a generated collection is."""

    features: int
    train: int
    valid: int
    test: int


PresetName = Literal["tiny", "laptop", "full"]
PRESETS: dict[str, Preset] = {
    "tiny": Preset(features=32, train=600, valid=150, test=300),
    "laptop": Preset(features=64, train=8_000, valid=800, test=2_000),
    "full": Preset(features=700, train=20_000, valid=3_000, test=7_000),
}


@dataclass(frozen=True)
class _Factors:
    """The hidden side of some queries, before features and grades are read off it."""

    offsets: NDArray[np.int64]
    of_query: Floats
    of_document: Floats
    query_bias: Floats
    noise: Floats

    @property
    def query_of_document(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.of_query)), np.diff(self.offsets))


class World:
    """A teacher, a feature map and grade thresholds, drawn from one seed."""

    def __init__(self, features: int, seed: int = 0) -> None:
        if features < 4:
            raise SettingsError(f"a world needs at least 4 features, not {features}")
        self.feature_count = features
        self.seed = seed
        rng = np.random.default_rng(np.random.SeedSequence([seed, 0x_D0A1]))
        self._draw_teacher(rng)
        self._draw_feature_map(rng)
        self._calibrate(rng)

    def _draw_teacher(self, rng: np.random.Generator) -> None:
        w = rng.standard_normal(FACTORS)
        self._linear = (w / np.linalg.norm(w)).astype(np.float32)
        self._hidden = (rng.standard_normal((FACTORS, 32)) * 2 / np.sqrt(FACTORS)).astype(
            np.float32
        )
        self._hidden_out = rng.standard_normal(32).astype(np.float32)
        pairs = np.array([rng.choice(FACTORS, 2, replace=False) for _ in range(8)])
        self._product_pairs = (pairs[:, 0], pairs[:, 1])

    def _draw_feature_map(self, rng: np.random.Generator) -> None:
        n = self.feature_count
        kinds = rng.permutation(n)
        noise_count, query_count = round(NOISE_SHARE * n), round(QUERY_SHARE * n)
        self._query_features = kinds[noise_count : noise_count + query_count]
        document_features = kinds[noise_count + query_count :]
        self._projection = np.zeros((FACTORS, n), dtype=np.float32)
        for column in kinds[noise_count:]:
            used = rng.choice(FACTORS, rng.integers(1, 4), replace=False)
            direction = rng.standard_normal(len(used))
            self._projection[used, column] = direction / np.linalg.norm(direction)
        self._noise_scale = np.ones(n, dtype=np.float32)
        self._noise_scale[self._query_features] = 0.3
        self._noise_scale[document_features] = 0.7 * rng.uniform(0.5, 1.5, len(document_features))
        shares = np.array([share for share, _ in TRANSFORMS])
        bounds = np.round(np.cumsum(shares) * len(document_features)).astype(int)
        self._bent = list(
            zip(np.split(document_features, bounds[:-1]), (t for _, t in TRANSFORMS), strict=True)
        )

    def _calibrate(self, rng: np.random.Generator) -> None:
        factors = _draw_factors(CALIBRATION_QUERIES, rng)
        z = _mixed(factors)
        parts = self._nonlinear_parts(z)
        self._part_scales = [(float(p.mean()), float(p.std())) for p in parts]
        total = sum((p - m) / s for p, (m, s) in zip(parts, self._part_scales, strict=True))
        self._nonlinear_scale = (float(np.mean(total)), float(np.std(total)))
        self._thresholds = np.quantile(self._utility(factors), np.cumsum(GRADE_SHARES[:-1]))
        raw = self._raw_features(factors, rng)
        self._quantiles = np.quantile(raw, np.linspace(0, 1, QUANTILES), axis=0).astype(np.float32)

    def _nonlinear_parts(self, z: Floats) -> tuple[Floats, Floats]:
        network = np.tanh(z @ self._hidden) @ self._hidden_out
        first, second = self._product_pairs
        return network, (z[:, first] * z[:, second]).sum(axis=1)

    def _utility(self, factors: _Factors) -> Floats:
        z = _mixed(factors)
        parts = self._nonlinear_parts(z)
        total = sum((p - m) / s for p, (m, s) in zip(parts, self._part_scales, strict=True))
        mean, scale = self._nonlinear_scale
        return (
            0.8 * (z @ self._linear)
            + 0.7 * (total - mean) / scale
            + 1.5 * factors.query_bias[factors.query_of_document]
            + 1.3 * factors.noise
        )

    def _raw_features(self, factors: _Factors, rng: np.random.Generator) -> Floats:
        projected = _mixed(factors) @ self._projection
        noise = rng.standard_normal(projected.shape, dtype=np.float32)
        values = projected + self._noise_scale * noise
        for columns, bend in self._bent:
            values[:, columns] = bend(values[:, columns])
        of_query = factors.of_query @ self._projection[:, self._query_features]
        jitter = rng.standard_normal(of_query.shape, dtype=np.float32)
        of_query += self._noise_scale[self._query_features] * jitter
        values[:, self._query_features] = of_query[factors.query_of_document]
        return values

    def generate(self, queries: int, seed: int, *, first_id: int = 1) -> Dataset:
        """Draw this many queries of the world, named from `first_id` on, with their documents."""
        if queries < 1:
            raise SettingsError(f"at least one query must be generated, not {queries}")
        rng = np.random.default_rng(np.random.SeedSequence([seed, self.seed, 0x_DA7A]))
        levels = np.linspace(0, 1, QUANTILES)
        features, grades, lengths = [], [], []
        for start in range(0, queries, QUERIES_PER_BLOCK):
            factors = _draw_factors(min(QUERIES_PER_BLOCK, queries - start), rng)
            block = self._raw_features(factors, rng)
            for column in range(self.feature_count):
                block[:, column] = np.interp(block[:, column], self._quantiles[:, column], levels)
            features.append(block)
            grades.append(np.searchsorted(self._thresholds, self._utility(factors)))
            lengths.append(np.diff(factors.offsets))
        return Dataset(
            features=np.concatenate(features),
            offsets=np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64),
            query_ids=np.arange(first_id, first_id + queries).astype(str),
            grades=np.concatenate(grades).astype(np.float32),
            max_grade=float(len(GRADE_SHARES) - 1),
        )


def _draw_factors(queries: int, rng: np.random.Generator) -> _Factors:
    lengths = 4 + rng.gamma(2.0, (MEAN_DOCUMENTS - 4) / 2.0, size=queries)
    lengths = np.minimum(np.round(lengths), 120).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return _Factors(
        offsets=offsets,
        of_query=rng.standard_normal((queries, FACTORS), dtype=np.float32),
        of_document=rng.standard_normal((offsets[-1], FACTORS), dtype=np.float32),
        query_bias=rng.standard_normal(queries, dtype=np.float32),
        noise=rng.standard_normal(offsets[-1], dtype=np.float32),
    )


def _mixed(factors: _Factors) -> Floats:
    shared = np.float32(np.sqrt(0.3)) * factors.of_query[factors.query_of_document]
    return shared + np.float32(np.sqrt(0.7)) * factors.of_document


def with_document_ids(dataset: Dataset) -> Dataset:
    """Name every document after its query and its number there, as logs need it."""
    numbers = np.arange(dataset.document_count) - np.repeat(dataset.offsets[:-1], dataset.lengths)
    queries = np.repeat(dataset.query_ids, dataset.lengths)
    ids = np.char.add(np.char.add(queries, "-"), (numbers + 1).astype(str))
    return replace(dataset, doc_ids=ids)


@shows_progress("generating data")
def generate_splits(preset: str | Preset = "laptop", *, seed: int = 0, world: int = 0) -> Splits:
    """Training, validation and test queries of one world.

    `seed` draws the data; `world` draws what relevance and the features are made of.

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny", seed=1)
    >>> data.train.feature_count, data.train.max_grade
    (32, 4.0)
    """
    if isinstance(preset, str):
        if preset not in PRESETS:
            raise SettingsError(f"unknown preset {preset!r}; known are {', '.join(PRESETS)}")
        preset = PRESETS[preset]
    if min(seed, world) < 0:
        raise SettingsError(f"the seeds of data and world are 0 or more, not {min(seed, world)}")
    source = World(preset.features, world)
    seeds = np.random.SeedSequence(seed).generate_state(3)
    sizes = (preset.train, preset.valid, preset.test)
    first = (1, 1 + preset.train, 1 + preset.train + preset.valid)
    return Splits(
        *(
            source.generate(n, int(s), first_id=i)
            for n, s, i in zip(sizes, seeds, first, strict=True)
        )
    )
