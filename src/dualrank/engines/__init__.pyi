from .debiased_labels import debiased_labels as debiased_labels
from .onnx import export_onnx as export_onnx
