from .debiased_labels import debiased_labels as debiased_labels
from .onnx import export_onnx as export_onnx
from .target import Export as Export
from .target import Target as Target
from .target import Written as Written
from .targets import TARGETS as TARGETS
from .targets import export as export
