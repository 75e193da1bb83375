"""Training happens on one device, whichever it is."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dualrank.corrections.dual import DualLearning
from dualrank.corrections.ipw import InversePropensity
from dualrank.corrections.naive import Naive
from dualrank.corrections.position_models import (
    ContextualPositions,
    PositionNetwork,
    RecurrentPositions,
)
from dualrank.data.lists import PADDING
from dualrank.errors import SettingsError
from dualrank.learning.device import choose_device
from dualrank.learning.loop import Loop
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.batch import Batch
from dualrank.rankers.network import DNN
from dualrank.settings import TrainingSettings

CPU, META = torch.device("cpu"), torch.device("meta")


class Elsewhere(TorchDispatchMode):
    """Stands for a GPU: operations on the meta device run, but may not meet tensors of the CPU.

    Numbers that are read back are 1, and tensors that are copied back hold ones, since the meta
    device computes shapes only. Copies between devices are counted.
    """

    def __init__(self):
        super().__init__()
        self.there, self.copies = 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        places = {t.device.type for t in tensors if t.ndim}
        aten = torch.ops.aten
        if func in (aten._to_copy.default, aten.copy_.default):
            target = kwargs.get("device", tensors[0].device)
            self.copies += torch.device(target) != tensors[-1].device
            if torch.device(target) == CPU and tensors[-1].device == META:
                return torch.ones(tensors[-1].shape, dtype=kwargs.get("dtype", tensors[-1].dtype))
            return func(*args, **kwargs)
        assert len(places) < 2, f"{func} mixes devices"
        self.there += "meta" in places
        if func is aten._local_scalar_dense.default and tensors[0].device == META:
            return 1.0
        return func(*args, **kwargs)


class Drawn:
    """Always the same batch, with padding."""

    def __init__(self, lists, batch):
        self.lists, self._batch = lists, batch

    def draw(self, size, rng):
        return self._batch


def corrections(depth, settings):
    contextual = ContextualPositions(depth, {"phone": 2, "desk": 1})
    return {
        "naive": Naive(),
        "ipw": InversePropensity(Propensity.of(np.linspace(1, 0.2, depth)), depth),
        "dla": DualLearning(depth, settings),
        "network": DualLearning(depth, settings, PositionNetwork(depth)),
        "recurrent": DualLearning(depth, settings, RecurrentPositions(depth)),
        "contextual": DualLearning(depth, settings, contextual),
    }


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("method", ["naive", "ipw", "dla", "network", "recurrent", "contextual"])
def test_every_tensor_of_a_step_is_on_the_device_of_the_loop(
    dataset, lists, method, padded, optimizer
):
    settings = TrainingSettings(optimizer=optimizer, batch_size=8)
    full = (lists.documents != PADDING).all(axis=1)
    documents = lists.documents[full][:8].copy()
    if padded:
        documents[::2, -1] = PADDING
    labels = np.zeros(documents.shape, np.float32)
    labels[:, 1] = 1
    contexts = np.arange(len(documents), dtype=np.int32) % 2 if method == "contextual" else None
    elsewhere = Elsewhere()
    with elsewhere:
        loop = Loop(
            DNN((4,)).build(dataset.feature_count),
            torch.from_numpy(dataset.features),
            Drawn(lists, Batch(documents, labels, 8, contexts)),
            corrections(lists.depth, settings)[method],
            settings,
            device=META,
        )
        before = elsewhere.copies
        loop.step()
        # What goes over in a step: the batch, and nothing of the model.
        assert elsewhere.copies - before == 2 + padded + (contexts is not None)
        assert len(loop.ranker.predict(dataset.features)) == len(dataset.features)
        held = loop.state(1, {}).tensors
    assert elsewhere.there > 50
    assert {tensor.device for tensor in held.values() if tensor.ndim} == {META}


def test_the_check_itself_notices_a_tensor_that_was_left_behind():
    with Elsewhere(), pytest.raises(AssertionError, match="mixes devices"):
        torch.ones(2, device=META) + torch.ones(2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_one_sentence(name):
    with pytest.raises(SettingsError, match=f"device is {name}, but no CUDA GPU was found"):
        choose_device(name)
    assert choose_device("auto") == choose_device("cpu") == CPU


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:-1", "cuda:x", "meta", ""])
def test_a_device_that_is_not_known_is_refused(name):
    with pytest.raises(SettingsError, match="device is auto, cpu, cuda or cuda:n, not"):
        choose_device(name)


def test_workers_of_one_machine_take_a_gpu_each(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("auto") == torch.device("cuda", 0)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda", 1)
    assert choose_device("cuda:0") == torch.device("cuda", 0)
    with pytest.raises(SettingsError, match="GPU 5 was asked for, but this machine has 2"):
        choose_device("cuda:5")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(SettingsError, match="GPU 2 was asked for, but this machine has 2"):
        choose_device("auto")
