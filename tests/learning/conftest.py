"""Tests of learning share the problems above, and one thread each."""

import torch

torch.set_num_threads(1)
