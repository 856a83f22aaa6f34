"""A found network without nasight: one readable Python file, torch.export, ONNX."""

from nasight.export._graphs import to_onnx, to_torch_export
from nasight.export._python import ExportDesign, module_from, python_source
from nasight.export._weights import fitted, same_outputs

__all__ = ["ExportDesign", "fitted", "module_from", "python_source", "same_outputs", "to_onnx", "to_torch_export"]
