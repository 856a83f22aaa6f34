"""A network as a graph that other programs run: torch.export's file, ONNX."""

from __future__ import annotations

import importlib.util
import io
import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from nasight.errors import RequestError, RunError
from nasight.export._weights import same_outputs
from nasight.runs import write_atomic

REGISTRY = "torch.onnx._internal.exporter._registration"


def to_torch_export(network: nn.Module, inputs: tuple[int, ...], path: str | Path) -> float:
    """Write a `.pt2` file that `torch.export.load(path).module()` reads, for batches of any size.

    Returns how far its outputs are from the network's.
    """
    network = network.eval()
    buffer = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            batch = torch.export.Dim("batch", min=1)
            program = torch.export.export(network, (torch.zeros(2, *inputs),), dynamic_shapes=({0: batch},))
            torch.export.save(program, buffer)
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"torch.export cannot trace this network: {first}") from error
    apart = same_outputs(network, _Plain(program.module()), inputs)
    write_atomic(Path(path), buffer.getvalue())
    return apart


def to_onnx(network: nn.Module, inputs: tuple[int, ...], path: str | Path) -> float:
    """Write an ONNX file with a free batch size; needs the packages onnx and onnxscript.

    Returns how far its outputs are from the network's, by onnx's reference evaluator.
    """
    missing = [name for name in ("onnx", "onnxscript") if importlib.util.find_spec(name) is None]
    if missing:
        raise RequestError(f"ONNX needs the packages onnx and onnxscript: pip install {' '.join(missing)}")
    network = network.eval()
    try:
        with warnings.catch_warnings(), _quiet(REGISTRY), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            batch = torch.export.Dim("batch", min=1)
            program = torch.onnx.export(
                network, (torch.zeros(2, *inputs),), dynamo=True, dynamic_shapes=({0: batch},), verbose=False
            )
            assert program is not None
            program.save(str(Path(folder) / "net.onnx"))
            content = (Path(folder) / "net.onnx").read_bytes()
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"torch cannot write this network as ONNX: {first}") from error
    apart = same_outputs(network, _Evaluated(content), inputs)
    write_atomic(Path(path), content)
    return apart


@contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """Without a logger's warnings: torch lists each operation of packages that are not installed."""
    log = logging.getLogger(logger)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


class _Evaluated(nn.Module):
    """An ONNX file as a module."""

    def __init__(self, content: bytes) -> None:
        from onnx import load_from_string
        from onnx.reference import ReferenceEvaluator

        super().__init__()
        self._evaluator = ReferenceEvaluator(load_from_string(content))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        (out,) = self._evaluator.run(None, {self._evaluator.input_names[0]: x.numpy()})
        return torch.from_numpy(out)


class _Plain(nn.Module):
    """An exported module behind `eval()` and `train()`, which it refuses itself."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._call = [module]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self._call[0](x)
        return out
