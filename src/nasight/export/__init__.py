"""A found network without nasight: one readable Python file, torch.export, ONNX, a program that predicts."""

from nasight.export._graphs import to_onnx, to_torch_export
from nasight.export._python import ExportDesign, module_from, predict_source, python_source
from nasight.export._weights import fitted, same_outputs

__all__ = [
    "ExportDesign",
    "fitted",
    "module_from",
    "predict_source",
    "python_source",
    "same_outputs",
    "to_onnx",
    "to_torch_export",
]
