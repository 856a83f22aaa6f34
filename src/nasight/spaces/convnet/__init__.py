"""Plain convolutional networks: width, kernel, number of layers and skips of every stage."""

from nasight.spaces.convnet._space import ConvNet

__all__ = ["ConvNet"]
