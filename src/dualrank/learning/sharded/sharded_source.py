"""A log in shards as one worker trains on it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.models.counting import require_countable, require_skips
from dualrank.corrections.correction import Correction
from dualrank.data.scaling import Scaler
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.errors import DataError, SettingsError
from dualrank.learning.feedback import Feedback, require_clicks
from dualrank.learning.loop import Progress
from dualrank.learning.model import missing_values
from dualrank.learning.sharded.mapped_feedback import mapped_feedback
from dualrank.learning.sharded.own_shards import ROWS_PER_BLOCK, Gaps, OwnShards
from dualrank.learning.sharded.query_sample import choose, gather, shares_of
from dualrank.learning.whole_source import WholeSource
from dualrank.learning.workers import Workers

if TYPE_CHECKING:
    from dualrank.learning.material import Material


def deal(log: ShardedLog, workers: int) -> list[int]:
    """Which worker has each shard, so that sessions are even among them.

    The largest shards are dealt out first, each to who has the least.
    """
    if workers > len(log.shards):
        raise SettingsError(
            f"{workers} workers for {len(log.shards)} shards: each needs one of its own; start "
            "fewer, or reduce the log into more shards"
        )
    owners, loads = [0] * len(log.shards), [0] * workers
    for shard in sorted(log.shards, key=lambda each: -each.sessions):
        # A shard without sessions counts, too: nobody is left without one.
        least = min(range(workers), key=lambda worker: loads[worker])
        owners[shard.number] = least
        loads[least] += shard.sessions + 1
    return owners


@dataclass(frozen=True, eq=False)
class ShardedSource:
    """The shards of this worker, and the sample of all of them that everybody holds.

    `share` of the queries is held out, chosen by `seed`, as far as the sample has room for them.
    """

    log: ShardedLog
    own: OwnShards
    sample: WholeSource
    workers: Workers
    _scalers: dict[str, Scaler] = field(default_factory=dict)

    @classmethod
    def of(
        cls, log: ShardedLog, share: float, seed: int, progress: Progress | None = None
    ) -> ShardedSource:
        """Verify the shards of this worker, hold some queries out, and take the sample.

        Under `torchrun` all workers call this together.
        """
        require_features(log)
        workers = Workers.current()
        owners = deal(log, workers.count)
        wanted = shares_of(log, share)
        mine = [shard for shard in log.shards if owners[shard.number] == workers.number]
        for shard in mine:
            shard.require_files()
        choices, gaps = {}, []
        left, totals = np.zeros(len(log.shards)), np.zeros(2)
        for done, shard in enumerate(mine):
            if progress:
                progress(done, len(mine))
            replace(shard).verify()  # what nobody uses afterwards is not kept mapped
            chosen = choose(shard, log, int(wanted[shard.number]), seed)
            held = np.zeros(shard.queries, dtype=bool)
            held[chosen.held_out] = True
            gaps.append(Gaps.of(shard, held))
            left[shard.number] = shard.sessions - gaps[-1].width[-1]
            choices[shard.number] = chosen
            totals += replace(shard).pair_counts[:, 2:].sum(axis=0)
        if progress:
            progress(len(mine), len(mine))
        shown, clicks = workers.add_up(totals)
        require_clicks(clicks, log.sessions)
        numbers = range(len(log.shards))
        sample = gather(log, [choices.get(number) for number in numbers], owners, workers, share)
        require_countable(sample.log)
        if clicks == shown:
            require_skips(sample.log)
        own = OwnShards(mine, gaps, workers.add_up(left).astype(np.int64))
        return cls(log, own, sample, workers)

    @property
    def sessions(self) -> int:
        """How many can be drawn."""
        return self.own.sessions

    @property
    def clicks(self) -> int:
        """How many there may be among them, judged by the sample."""
        return round(self.sample.clicks * self.sessions / self.sample.sessions)

    def scaler(self, kind: str) -> Scaler:
        """The scaling of all documents of all shards, learned once."""
        if kind not in self._scalers:
            own = {shard.number: shard.dataset.features for shard in self.own.shards}
            parts = [own.get(shard.number) for shard in self.log.shards]
            together = self.workers.add_up
            self._scalers[kind] = Scaler.fit_parts(parts, kind=kind, together=together)
        return self._scalers[kind]

    def require_values(self, ranker: str, scaling: str) -> None:
        """Refuse missing values, for a ranker of a kind that needs all; all workers say the same.

        A scaling comes upon them as it is learned; only then they are counted.
        """
        if scaling != "none":
            with suppress(DataError):
                self.scaler(scaling)
                return
        missing = np.zeros(self.sample.dataset.feature_count)
        for shard in self.own.shards:
            features = shard.dataset.features
            for start in range(0, shard.documents, ROWS_PER_BLOCK):
                missing += np.isnan(features[start : start + ROWS_PER_BLOCK]).sum(axis=0)
        missing = self.workers.add_up(missing)
        if missing.any():
            said = missing_values(missing, self.log.documents, self.log.feature_names, ranker)
            raise DataError(f"{self.log.folder}: {said}")

    def sessions_by(self, context: str) -> NDArray[np.int64]:
        """How many sessions are in each value of a column."""
        names = self.sample.log.column(context).names
        table = np.zeros(len(names))
        for shard in self.own.shards:
            codes, counts = shard.log.columns[context].codes, shard.log.counts
            for start in range(0, shard.patterns, ROWS_PER_BLOCK):
                rows = slice(start, start + ROWS_PER_BLOCK)
                table += np.bincount(codes[rows], counts[rows], len(names))
        return self.workers.add_up(table).astype(np.int64)

    def describe(self, context: str | None = None) -> dict[str, Any]:
        """Plain values for the manifest: which data these are, and what was sampled of how much."""
        held_out = self.sample.held_out
        shards = {
            "count": len(self.log.shards),
            "sessions": self.log.sessions,
            "lists": self.log.lists,
            "sampled_sessions": self.sample.log.sessions,
            "sampled_lists": len(self.sample.lists),
            "held_out_sessions": 0 if held_out is None else held_out.sessions,
        }
        return {"data": self.log.digest, "shards": shards, "reading": self.log.reading.to_dict()}

    def feedback(self, material: Material, correction: Correction, scaler: Scaler) -> Feedback:
        """Lists that are drawn from the shards, with features that are scaled as they come."""
        return mapped_feedback(self, material.plan, correction, scaler, material.ground)


def require_features(log: ShardedLog) -> None:
    """Refuse shards that nothing can be learned from."""
    log.require_features()
    if log.sessions == 0:
        raise DataError(f"{log.folder}: the log has no sessions to learn from")
