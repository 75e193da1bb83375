"""Lists with labels: as they are drawn, and as rankers and corrections see them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dualrank.data.lists import PADDING


@dataclass(frozen=True, eq=False)
class Batch:
    """Lists with labels out of `drawn` sessions, as a source of labels draws them.

    `contexts` says in which context each list was shown, where the log tells them apart; `queries`
    to which query it belongs, where a batch holds all that there is.
    """

    documents: NDArray[np.int32]
    labels: NDArray[np.float32]
    drawn: int
    contexts: NDArray[np.int32] | None = None
    queries: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.documents)

    def labelled(self) -> Batch:
        """Only the lists with a label; `drawn` stays that of the whole.

        A list without a click has no loss, so it need not cost a forward pass; because the loss is
        divided by the number drawn, the gradient is the same as if it had been computed.
        """
        return self._take(np.flatnonzero(self.labels.any(axis=1)))

    def share(self, worker: int, workers: int) -> Batch:
        """Every n-th list, for one of n workers; `drawn` stays that of the whole."""
        if workers == 1:
            return self
        return self._take(slice(worker, None, workers))

    def _take(self, chosen: slice | NDArray[np.intp]) -> Batch:
        def part(array: NDArray[Any] | None) -> Any:
            return None if array is None else np.ascontiguousarray(array[chosen])

        return replace(
            self,
            documents=part(self.documents),
            labels=part(self.labels),
            contexts=part(self.contexts),
            queries=part(self.queries),
        )

    def to(self, device: torch.device) -> Shown:
        """The same lists where steps are computed."""

        def tensor(array: NDArray[Any]) -> Tensor:
            return torch.from_numpy(array).to(device)

        mask = self.documents != PADDING
        full = bool(mask.all())
        return Shown(
            documents=tensor(self.documents),
            rows=tensor(self.documents.ravel() if full else self.documents[mask]),
            # Padding has no label, whatever a source of labels may say.
            labels=tensor(self.labels if full else self.labels * mask),
            mask=tensor(mask),
            full=full,
            contexts=None if self.contexts is None else tensor(self.contexts),
            queries=self.queries,
        )


@dataclass(frozen=True, eq=False)
class Shown:
    """Lists as tensors `[lists, positions]`, and `rows`, the displayed documents one by one.

    `documents` are row numbers of the training matrix; `mask` is true where a document was
    displayed, and `full` says that this is everywhere.
    """

    documents: Tensor
    rows: Tensor
    labels: Tensor
    mask: Tensor
    full: bool
    contexts: Tensor | None = None
    queries: NDArray[np.int32] | None = None

    @cached_property
    def weight(self) -> Tensor:
        """The mask as numbers: 1 where a document was displayed, 0 at padding."""
        return self.mask.to(self.labels.dtype)

    def lay_out(self, values: Tensor) -> Tensor:
        """Values of the `rows`, laid out like the lists, 0 at padding."""
        if self.full:
            return values.view(self.mask.shape)
        return values.new_zeros(self.mask.shape).masked_scatter(self.mask, values)

    def pick(self, values: Tensor) -> Tensor:
        """Values laid out like the lists, one for each of the `rows`."""
        return values.reshape(-1) if self.full else values[self.mask]
