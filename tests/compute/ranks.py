"""Real ranks for tests: processes joined through a file and the loopback, forked from one that has imported all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NURSERY = """
import json, os, sys
import torch, torch.distributed as dist
torch.set_num_threads(1)
import nasight.studies, nasight.searching, nasight.training, nasight.cli
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
for line in sys.stdin:
    request = json.loads(line)
    children = []
    for rank in range(request["size"]):
        child = os.fork()
        if child == 0:
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(f"{request['place']}/{rank}.{name}", os.O_CREAT | os.O_WRONLY, 0o600), number)
            os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(request["size"])}
            dist.init_process_group(
                "gloo", init_method=f"file://{request['place']}/joined", rank=rank, world_size=request["size"]
            )
            status = 1
            try:
                if "arguments" in request:
                    nasight.cli.main(request["arguments"])
                else:
                    sys.path.insert(0, request["folder"])
                    module, name = request["work"].split(":")
                    found = getattr(__import__(module), name)(rank, **request["given"])
                    open(f"{request['place']}/{rank}.json", "w").write(json.dumps(found))
                    status = 0
            except SystemExit as left:
                status = left.code or 0
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.__stderr__)
            sys.stdout.flush(), sys.__stderr__.flush()
            os._exit(status)
        children.append(child)
    print(json.dumps(children), flush=True)
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True)
"""
PATIENCE = 240


class RankNursery:
    """Starts ranks and waits for them."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def start(self, place: Path, size: int, **request: Any) -> list[int]:
        """The process numbers of ranks that carry out `arguments`, or call `work` (module:function) with `given`."""
        place.mkdir(parents=True)
        assert self.process.stdin
        assert self.process.stdout
        folder = str(Path(__file__).parent)
        self.process.stdin.write(json.dumps({"place": str(place), "size": size, "folder": folder, **request}) + "\n")
        pids: list[int] = json.loads(self.process.stdout.readline())
        return pids

    def wait(self) -> list[int]:
        """Their exit codes."""
        assert self.process.stdout
        codes: list[int] = json.loads(self.process.stdout.readline())
        return codes

    def command(self, place: Path, size: int, *arguments: str) -> tuple[list[int], list[str], list[str]]:
        """Exit codes, standard outputs and standard errors of `nasight ARGUMENTS` in ranks."""
        self.start(place, size, arguments=arguments)
        codes = self.wait()
        return codes, *(told(place, size, name) for name in ("out", "err"))

    def call(self, place: Path, size: int, work: str, **given: Any) -> list[Any]:
        """What a function gives in each rank."""
        self.start(place, size, work=work, given=given)
        codes = self.wait()
        assert codes == [0] * size, told(place, size, "err")
        return [json.loads((place / f"{rank}.json").read_text()) for rank in range(size)]

    def close(self) -> None:
        self.process.communicate()


def told(place: Path, size: int, name: str) -> list[str]:
    return [(place / f"{rank}.{name}").read_text() for rank in range(size)]


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
