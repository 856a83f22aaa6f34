"""A browser without a window, spoken to through a pipe in its own language (the DevTools protocol)."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

PATH = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
LIMIT = 300.0
"""Seconds after which a thing that did not happen is said never to happen; a slow machine may need most of them."""
PAUSE = 0.05
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--remote-debugging-pipe",
)  # fmt: skip
# The browser reads from descriptor 3 and writes to descriptor 4.
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
DEVTOOLS = 10
"""Pipes get descriptors from here on, out of the way of 3 and 4."""


class Browser:
    """One browser for many tabs."""

    def __init__(self, profile: Path) -> None:
        assert PATH is not None
        theirs, self._out = _pipe()
        self._in, answers = _pipe()
        command = [sys.executable, "-c", LAUNCH, str(theirs), str(answers), PATH, *FLAGS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            command, pass_fds=(theirs, answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)
        os.close(answers)
        self._ids, self._rest, self._waiting = count(1), b"", deque[dict[str, Any]]()
        self.events: dict[str, list[dict[str, Any]]] = {}

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The answer to a request; events that come before it are put to their sessions."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + LIMIT
        while True:
            said = self._next(end)
            if said.get("id") == number:
                assert "error" not in said, f"{method}: {said['error']}"
                answer: dict[str, Any] = said["result"]
                return answer
            self.events.setdefault(said.get("sessionId", ""), []).append(said)

    def _next(self, end: float) -> dict[str, Any]:
        while not self._waiting:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"the browser said nothing for {LIMIT:.0f} s"
            chunk = os.read(self._in, 1 << 20)
            assert chunk, f"the browser ended with {self._process.wait()}"
            *whole, self._rest = (self._rest + chunk).split(b"\0")
            self._waiting.extend(json.loads(message) for message in whole)
        return self._waiting.popleft()

    @contextmanager
    def open(self, file: Path, width: int = 1200, height: int = 900) -> Iterator[Tab]:
        """A tab with a file of this machine, loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", session, **size)
        # What the machine prefers is not what is tested.
        light = {"name": "prefers-color-scheme", "value": "light"}
        self.call("Emulation.setEmulatedMedia", session, features=[light])
        self.call("Page.navigate", session, url=file.as_uri())
        tab = Tab(self, session)
        tab.wait(f"location.href === {json.dumps(file.as_uri())} && document.readyState === 'complete'")
        try:
            yield tab
        finally:
            self.call("Target.closeTarget", targetId=target)

    def close(self) -> None:
        os.close(self._out)
        os.close(self._in)
        try:
            self._process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Tab:
    """A page that is open."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        said = self._browser.call("Runtime.evaluate", self._session, expression=expression, returnByValue=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def do(self, statement: str) -> None:
        """Run a JavaScript statement."""
        self.value(f"{{ {statement}; undefined }}")

    def wait(self, condition: str) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + LIMIT
        while not (value := self.value(condition)):
            assert time.monotonic() < end, f"not so after {LIMIT:.0f} s: {condition}"
            time.sleep(PAUSE)
        return value

    @property
    def console(self) -> list[str]:
        """What the page, its scripts and the browser complained about."""
        said = []
        for event in self._events("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            text = json.dumps(event)
            # How fast software draws is the driver's business, not the page's.
            if "GL Driver Message" not in text:
                said.append(text)
        return said

    @property
    def requests(self) -> list[str]:
        """Addresses that the page asked for, itself and what it holds excepted."""
        asked = [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]
        return [url for url in asked[1:] if not url.startswith(("data:", "blob:"))]

    def _events(self, *methods: str) -> list[dict[str, Any]]:
        self.value("0")  # events come in order: those before this answer are here then
        return [event["params"] for event in self._browser.events.get(self._session, []) if event["method"] in methods]


def _pipe() -> tuple[int, int]:
    low = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, DEVTOOLS) for end in low)
    for end in low:
        os.close(end)
    return high[0], high[1]
