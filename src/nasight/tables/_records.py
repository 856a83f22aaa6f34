"""TFRecord files and small protobuf messages, read without TensorFlow.

A record is its length (8 bytes, little endian), a checksum of these 8 bytes, the content, and a checksum of the
content. A checksum is CRC-32C (Castagnoli), turned right by 15 bits and with a constant added, in 4 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError

POLYNOMIAL = 0x82F63B78
"""Castagnoli's, its bits in reverse."""
MASK = 0xA282EAD8
TOGETHER = 4096
"""Records whose checksums are computed side by side: byte by byte, one record alone would take all the time."""
LONGEST = 1 << 20
"""No record of a benchmark is longer; a length beyond is a damaged one."""


def _table() -> NDArray[np.uint32]:
    """What one byte does to the checksum, for each of its 256 values."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(POLYNOMIAL), table >> 1)
    return table


_BYTES = _table()


def masked_crc32c(contents: list[bytes]) -> NDArray[np.uint32]:
    """The masked checksum of each content.

    >>> hex(masked_crc32c([b"123456789"])[0])
    '0xc78ab0e5'
    """
    lengths = np.array([len(content) for content in contents])
    order = np.argsort(-lengths, kind="stable")
    padded = np.zeros((len(contents), int(lengths.max(initial=0))), np.uint8)
    for row, place in enumerate(order):
        padded[row, : lengths[place]] = np.frombuffer(contents[place], np.uint8)
    crc = np.full(len(contents), 0xFFFFFFFF, np.uint32)
    longer = len(contents) - np.searchsorted(np.sort(lengths), np.arange(padded.shape[1]), side="right")
    for column, count in enumerate(longer):  # the longest come first, so those that go on are the first rows
        crc[:count] = _BYTES[(crc[:count] ^ padded[:count, column]) & 0xFF] ^ (crc[:count] >> 8)
    crc = ~crc
    masked = np.empty_like(crc)
    masked[order] = ((crc >> 15) | (crc << 17)) + np.uint32(MASK)
    return masked


def read_records(path: Path) -> Iterator[bytes]:
    """The content of every record, in the order of the file; damage is refused with the record's number."""
    number = 0
    try:
        with path.open("rb") as file:
            while batch := _batch(file, path, number):
                for contents, sums, what in (
                    ([r[0] for r in batch], [r[2] for r in batch], "length"),
                    ([r[1] for r in batch], [r[3] for r in batch], "content"),
                ):
                    wrong = np.flatnonzero(masked_crc32c(contents) != np.array(sums, np.uint32))
                    if len(wrong):
                        raise _damaged(path, number + int(wrong[0]), f"the checksum of its {what} is wrong")
                yield from (record[1] for record in batch)
                number += len(batch)
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}") from error


def _batch(file: BinaryIO, path: Path, number: int) -> list[tuple[bytes, bytes, int, int]]:
    """The next records: (length as bytes, content, checksum of the one, checksum of the other)."""
    found: list[tuple[bytes, bytes, int, int]] = []
    while len(found) < TOGETHER:
        head = file.read(12)
        if not head:
            break
        size = int.from_bytes(head[:8], "little")
        if len(head) < 12 or size > LONGEST:
            raise _damaged(path, number + len(found), "it has no length")
        rest = file.read(size + 4)
        if len(rest) < size + 4:
            raise _damaged(path, number + len(found), f"it ends after {len(rest)} of {size + 4} bytes")
        (first,), (second,) = struct.unpack("<I", head[8:]), struct.unpack("<I", rest[size:])
        found.append((head[:8], rest[:size], first, second))
    return found


def _damaged(path: Path, number: int, why: str) -> RequestError:
    return RequestError(f"{path} is no TFRecord file or is damaged at record {number + 1}: {why}")


def fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """(number, value) of every field of a protobuf message: whole numbers, doubles, and bytes (texts, messages).

    >>> list(fields(bytes.fromhex("10d20a")))
    [(2, 1362)]
    """
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, wire = key >> 3, key & 7
        value: int | float | bytes
        if wire == 0:
            value, place = _varint(message, place)
        elif wire == 1:
            (value,), place = struct.unpack_from("<d", message, place), place + 8
        elif wire == 2:
            size, place = _varint(message, place)
            value, place = message[place : place + size], place + size
            if place > len(message):
                raise ValueError(f"field {number} of a message is longer than the message")
        else:
            raise ValueError(f"field {number} of a message has the unknown wire type {wire}")
        yield number, value


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        if place >= len(message):
            break
        byte = message[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if byte < 128:
            return value, place
    raise ValueError("a message ends inside a number")
