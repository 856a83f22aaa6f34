"""MurmurHash3 (32 bits, x86) of many n-grams at once, equal to hashing their space-joined text one by one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nasight.features._tokens import spans

_BLOCK = 1 << 17
"""N-grams hashed at once: their bytes stay in the cache."""


def hash_ngrams(
    grams: NDArray[np.int32], letters: NDArray[np.uint8], starts: NDArray[np.int64], seed: int
) -> NDArray[np.uint32]:
    """The hash of each n-gram, given as a row of token numbers; `letters` spells each token with a space after it."""
    blocks = [grams[i : i + _BLOCK] for i in range(0, len(grams), _BLOCK)]
    return np.concatenate([np.empty(0, np.uint32), *[_hash(block, letters, starts, seed) for block in blocks]])


def _hash(
    grams: NDArray[np.int32], letters: NDArray[np.uint8], starts: NDArray[np.int64], seed: int
) -> NDArray[np.uint32]:
    sizes = (starts[1:] - starts[:-1])[grams]  # (n-grams, order)
    sizes[:, -1] -= 1  # no space at the end
    length = sizes.sum(1)
    by_length = np.argsort(-length, kind="stable")  # those with another block are always the first ones
    grams, sizes, length = grams[by_length], sizes[by_length], length[by_length]
    words = (length + 3) // 4
    begin = np.cumsum(words) - words
    text = np.zeros(4 * int(words.sum()), np.uint8)
    into = (4 * begin)[:, None] + np.cumsum(sizes, 1) - sizes
    text[spans(into.ravel(), sizes.ravel())] = letters[spans(starts[grams].ravel(), sizes.ravel())]
    sorted_hashes = _murmur(text.view("<u4"), begin, length, seed)
    hashes = np.empty_like(sorted_hashes)
    hashes[by_length] = sorted_hashes
    return hashes


def _murmur(
    words: NDArray[np.uint32], begin: NDArray[np.int64], length: NDArray[np.int64], seed: int
) -> NDArray[np.uint32]:
    """Hashes of zero-padded texts in descending order of length; all texts go through a block in one step."""
    h = np.full(len(length), seed & 0xFFFFFFFF, np.uint32)
    blocks = length // 4
    for block in range(int(blocks[0]) if len(blocks) else 0):
        active = len(blocks) - int(np.searchsorted(blocks[::-1], block, side="right"))
        part = h[:active]
        part ^= _scramble(words[begin[:active] + block])
        part[:] = _rotate(part, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    rest = np.flatnonzero(length % 4)
    h[rest] ^= _scramble(words[begin[rest] + blocks[rest]])
    h ^= length.astype(np.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h ^= h >> np.uint32(shift)
        h *= np.uint32(factor)
    return h


def _scramble(k: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return _rotate(k * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _rotate(k: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return (k << np.uint32(bits)) | (k >> np.uint32(32 - bits))
