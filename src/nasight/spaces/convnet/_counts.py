"""Parameters and multiply-adds of plain convolutional networks, without building them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nasight.spaces.convnet._network import KERNEL, StageForm, halvings


def parameter_count(forms: Sequence[StageForm], inputs: tuple[int, ...], classes: int) -> int:
    """Kernels, scale and shift of every batch norm, and the linear layer with its bias."""
    norms = sum(2 * form.channels * form.layers for form in forms)
    kernels = sum(entries for _, entries in _kernels(forms, inputs[0]))
    return kernels + norms + (forms[-1].channels + 1) * classes


def product_count(forms: Sequence[StageForm], inputs: tuple[int, ...], classes: int) -> int:
    """Every entry of a kernel is multiplied once per pixel; the linear layer comes after the mean over all pixels."""
    pixels, (height, width) = list[int](), inputs[1:]
    for halved in halvings(inputs):
        pixels.append(height * width)
        height, width = (height // 2, width // 2) if halved else (height, width)
    return sum(pixels[stage] * entries for stage, entries in _kernels(forms, inputs[0])) + forms[-1].channels * classes


def _kernels(forms: Sequence[StageForm], colors: int) -> Iterator[tuple[int, int]]:
    """The stage of every convolution, and the entries of its kernels."""
    before = colors
    for stage, form in enumerate(forms):
        for layer in range(form.layers):
            yield stage, before * form.channels * (KERNEL if layer else form.first) ** 2
            before = form.channels
