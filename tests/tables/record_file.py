"""A NAS-Bench-101 record file made another way: Google's protobuf, a checksum bit by bit, hashes from matrices.

    python tests/tables/record_file.py FILE.tfrecord [RUN ...]

writes 200 cells with made-up accuracies; those that searches in NAS-Bench-1Shot1's spaces proposed are among them.
Nothing here imports nasight, which reads such files with code of its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

LENGTHS = (4, 12, 36, 108)
NUMBERS = {"conv3x3-bn-relu": 0, "conv1x1-bn-relu": 1, "maxpool3x3": 2}


def metrics_message() -> Any:
    """The class of the benchmark's message, from the published field names and numbers."""
    file = descriptor_pb2.FileDescriptorProto(name="metrics.proto", package="made", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    evaluation, whole = file.message_type.add(name="Evaluation"), file.message_type.add(name="Metrics")
    for number, name in enumerate(("epoch", "seconds", "train", "valid", "test"), 1):
        evaluation.field.add(name=name, number=number, type=kinds.TYPE_DOUBLE, label=kinds.LABEL_OPTIONAL)
    evaluation.field.add(name="checkpoint", number=6, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    inner = {"type": kinds.TYPE_MESSAGE, "type_name": ".made.Evaluation", "label": kinds.LABEL_REPEATED}
    whole.field.add(name="evaluations", number=1, **inner)
    whole.field.add(name="parameters", number=2, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    whole.field.add(name="total", number=3, type=kinds.TYPE_DOUBLE, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("made.Metrics"))


def checksum(content: bytes) -> int:
    """CRC-32C by long division, masked."""
    remainder = 0xFFFFFFFF
    for byte in content:
        for bit in range(8):
            low = (remainder ^ (byte >> bit)) & 1
            remainder = (remainder >> 1) ^ (0x82F63B78 * low)
    remainder ^= 0xFFFFFFFF
    turned = (remainder >> 15) | (remainder << 17) & 0xFFFFFFFF
    return (turned + 0xA282EAD8) & 0xFFFFFFFF


def graph_hash(matrix: np.ndarray, operations: list[str]) -> str:
    def md5(text: str) -> str:
        return hashlib.md5(text.encode()).hexdigest()

    labels = [-1, *(NUMBERS[name] for name in operations[1:-1]), -2]
    degrees = zip(matrix.sum(1).tolist(), matrix.sum(0).tolist(), labels, strict=True)
    seen = [md5(f"({a}, {b}, {c})") for a, b, c in degrees]
    for _ in labels:
        seen = [
            md5(
                "".join(sorted(np.array(seen)[matrix[:, v] == 1]))
                + "|"
                + "".join(sorted(np.array(seen)[matrix[v] == 1]))
                + "|"
                + seen[v]
            )
            for v in range(len(labels))
        ]
    return md5("[" + ", ".join(f"'{one}'" for one in sorted(seen)) + "]")


def random_cells(count: int, seed: int = 0) -> list[tuple[np.ndarray, list[str]]]:
    """Cells whose nodes all lie on a path from input to output, no two with one hash, at most 7 vertices, 9 edges."""
    rng, found = np.random.default_rng(seed), dict[str, tuple[np.ndarray, list[str]]]()
    while len(found) < count:
        size = int(rng.integers(3, 8))
        matrix = np.triu(rng.random((size, size)) < 0.5, 1).astype(int)
        whole = matrix[:-1].any(1).all() and matrix[:, 1:].any(0).all()
        operations = ["input", *(str(name) for name in rng.choice(list(NUMBERS), size - 2)), "output"]
        if whole and matrix.sum() <= 9:
            found.setdefault(graph_hash(matrix, operations), (matrix, operations))
    return list(found.values())


def accuracies(cell: int, epochs: int, repeat: int) -> tuple[float, float, float]:
    """Validation, test and seconds that the writer gives a training: exact in binary, different for all."""
    base = (64 + cell % 32) / 128 + LENGTHS.index(epochs) / 64 + repeat / 1024
    return base, base - 1 / 64 + (cell % 7) / 512, 4.0 * epochs + cell + repeat


def write(
    path: Path, cells: list[tuple[np.ndarray, list[str]]], *, lengths: tuple[int, ...] = LENGTHS, repeats: int = 3
) -> None:
    metrics, records = metrics_message(), []
    for number, (matrix, operations) in enumerate(cells):
        for epochs in lengths:
            for repeat in range(repeats):
                valid, test, seconds = accuracies(number, epochs, repeat)
                made = metrics(parameters=1000 * number + 7, total=3 * seconds)
                made.evaluations.add(epoch=0.0, seconds=0.0, train=0.1, valid=0.1, test=0.1, checkpoint="a")
                made.evaluations.add(epoch=epochs / 2, seconds=seconds / 2, train=0.5, valid=0.4, test=0.4)
                made.evaluations.add(epoch=epochs, seconds=seconds, train=1.0, valid=valid, test=test)
                bits = "".join(map(str, matrix.ravel().tolist()))
                coded = base64.b64encode(made.SerializeToString()).decode()
                row = [graph_hash(matrix, operations), epochs, bits, ",".join(operations), coded]
                records.append(json.dumps(row).encode())
    order = np.random.default_rng(1).permutation(len(records))
    with path.open("wb") as file:
        for place in order:
            head = struct.pack("<Q", len(records[place]))
            file.write(head + struct.pack("<I", checksum(head)))
            file.write(records[place] + struct.pack("<I", checksum(records[place])))


def cell_of_text(text: str) -> tuple[np.ndarray, list[str]]:
    """The matrix and operations of a text without idle nodes."""
    parts = [part[:-1].split("(") for part in text.split("|")]
    matrix = np.zeros((len(parts) + 1,) * 2, int)
    for node, (_, inputs) in enumerate(parts, 1):
        matrix[[int(i) for i in inputs.split("+")], node] = 1
    assert all(a <= b for a, b in pairwise(matrix.sum(0)[:2]))
    return matrix, ["input", *(name for name, _ in parts[:-1]), "output"]


def joined(matrix: np.ndarray, operations: list[str]) -> tuple[np.ndarray, list[str]]:
    """The cell without the nodes that are on no path from input to output."""
    ways = np.linalg.matrix_power(matrix + np.eye(len(matrix), dtype=int), len(matrix)) > 0
    kept = np.flatnonzero(ways[0] & ways[:, -1])
    return matrix[np.ix_(kept, kept)], [operations[i] for i in kept]


def cells_with(texts: Iterable[str], count: int = 200) -> list[tuple[np.ndarray, list[str]]]:
    """As many different cells: those of the texts first, then random ones."""
    known: dict[str, tuple[np.ndarray, list[str]]] = {}
    for cell in (*(joined(*cell_of_text(text)) for text in texts), *random_cells(count)):
        if len(known) < count:
            known.setdefault(graph_hash(*cell), cell)
    return list(known.values())


def proposals(run: Path) -> list[str]:
    """What a search found, and what it proposed at each epoch."""
    rows = [json.loads((run / "result.json").read_text())]
    history = run / "history.jsonl"
    rows += [json.loads(line) for line in history.read_text().splitlines()] if history.exists() else []
    return [row["architecture"] for row in rows]


def main() -> None:
    target, *runs = map(Path, sys.argv[1:])
    proposed = [text for run in runs for text in proposals(run)]
    cells = cells_with(proposed)
    write(target, cells)
    print(f"{target}: {len(cells)} cells, {12 * len(cells):,} records, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
