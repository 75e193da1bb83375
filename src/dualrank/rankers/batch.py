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
    to which query it belongs, where a batch holds all that there is. `ground` is what is known of
    each document beside its features, and `examined` in how many sessions of its list it was read,
    on the scale of the labels, where that is known. Where labels are sums, `sessions` says over how
    many sessions of each list; without it they are means. `settled` is the log examination that was
    believed when a list was settled, for lists from before users changed, and nan where what is
    believed today holds; lists that are settled say nothing about position.

    `documents` are rows of the training matrix, or of `features`, where lists bring their own.
    `is_share` says that these are the lists of one worker, and that others have drawn the rest.
    """

    documents: NDArray[np.int32]
    labels: NDArray[np.float32]
    drawn: int
    contexts: NDArray[np.int32] | None = None
    queries: NDArray[np.int32] | None = None
    ground: NDArray[np.float32] | None = None
    examined: NDArray[np.float32] | None = None
    sessions: NDArray[np.float32] | None = None
    settled: NDArray[np.float32] | None = None
    features: NDArray[np.float32] | None = None
    is_share: bool = False

    def __len__(self) -> int:
        return len(self.documents)

    def labelled(self) -> Batch:
        """Only the lists with a label; `drawn` stays that of the whole.

        A list without a click has no loss, so it need not cost a forward pass; because the loss is
        divided by the number drawn, the gradient is the same as if it had been computed.
        """
        labelled = self.labels.any(axis=1)
        return self if labelled.all() else self.take(np.flatnonzero(labelled))

    def share(self, worker: int, workers: int) -> Batch:
        """Every n-th list, for one of n workers; `drawn` stays that of the whole."""
        if workers == 1 or self.is_share:
            return self
        return self.take(slice(worker, None, workers))

    def take(self, chosen: slice | NDArray[np.intp]) -> Batch:
        """Some of the lists; `drawn` stays that of the whole."""

        def part(array: NDArray[Any] | None) -> Any:
            return None if array is None else np.ascontiguousarray(array[chosen])

        return replace(
            self,
            documents=part(self.documents),
            labels=part(self.labels),
            contexts=part(self.contexts),
            queries=part(self.queries),
            ground=part(self.ground),
            examined=part(self.examined),
            sessions=part(self.sessions),
            settled=part(self.settled),
        )

    def to(self, device: torch.device) -> Shown:
        """The same lists where steps are computed."""

        def tensor(array: NDArray[Any]) -> Tensor:
            return torch.from_numpy(array).to(device)

        mask = self.documents != PADDING
        full = bool(mask.all())
        documents = tensor(self.documents)
        # Where documents stand is found here, so that a GPU is not waited for.
        cells = None if full else tensor(np.flatnonzero(mask))
        first = None if mask[:, 0].all() else tensor(mask.argmax(axis=1))
        return Shown(
            documents=documents,
            rows=documents.view(-1) if cells is None else documents.view(-1)[cells],
            # Padding has no label, whatever a source of labels may say.
            labels=tensor(self.labels if full else self.labels * mask),
            cells=cells,
            first=first,
            contexts=None if self.contexts is None else tensor(self.contexts),
            queries=self.queries,
            ground=None if self.ground is None else tensor(self.ground),
            examined=None if self.examined is None else tensor(self.examined),
            sessions=None if self.sessions is None else tensor(self.sessions),
            settled=None if self.settled is None else tensor(self.settled),
            features=None if self.features is None else tensor(self.features),
        )


@dataclass(frozen=True, eq=False)
class Shown:
    """Lists as tensors `[lists, positions]`, and `rows`, the displayed documents one by one.

    `documents` are row numbers of the training matrix, or of `features`, where lists bring their
    own. `cells` are the places of the `rows` in the
    flattened lists, or None where every place is taken; `first` is at which position the first
    document of each list stands, or None where that is the first everywhere.
    """

    documents: Tensor
    rows: Tensor
    labels: Tensor
    cells: Tensor | None = None
    first: Tensor | None = None
    contexts: Tensor | None = None
    queries: NDArray[np.int32] | None = None
    ground: Tensor | None = None
    examined: Tensor | None = None
    sessions: Tensor | None = None
    settled: Tensor | None = None
    features: Tensor | None = None

    @property
    def full(self) -> bool:
        """Whether there is no padding."""
        return self.cells is None

    @cached_property
    def mask(self) -> Tensor:
        """True where a document was displayed."""
        return self.documents != PADDING

    @cached_property
    def padding(self) -> Tensor:
        """True where no document was displayed."""
        return ~self.mask

    @cached_property
    def weight(self) -> Tensor:
        """The mask as numbers: 1 where a document was displayed, 0 at padding."""
        return self.mask.to(self.labels.dtype)

    @cached_property
    def times(self) -> Tensor:
        """How often each list was displayed, on the scale of its labels, `[lists, 1]`."""
        if self.sessions is None:
            return torch.ones_like(self.labels[:, :1])
        return self.sessions[:, None]

    def believed(self, today: Tensor) -> Tensor:
        """Log examination: as believed when a list was settled, or `today`."""
        if self.settled is None:
            return today
        return torch.where(torch.isnan(self.settled), today, self.settled)

    def of_today(self, values: Tensor) -> Tensor:
        """Values laid out like the lists, 0 on those that are settled."""
        if self.settled is None:
            return values
        return torch.where(torch.isnan(self.settled[:, :1]), values, 0.0)

    def lay_out(self, values: Tensor) -> Tensor:
        """Values of the `rows`, laid out like the lists, 0 at padding."""
        if self.cells is None:
            return values.view(self.documents.shape)
        laid_out = values.new_zeros(self.documents.numel()).index_copy_(0, self.cells, values)
        return laid_out.view(self.documents.shape)

    def pick(self, values: Tensor) -> Tensor:
        """Values laid out like the lists, one for each of the `rows`."""
        flat = values.reshape(-1)
        return flat if self.cells is None else flat.index_select(0, self.cells)
