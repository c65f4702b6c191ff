"""A real browser as a test drives it: Chromium without a window, spoken to through a pipe; nothing is installed for it."""

import base64
import json
import os
import select
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SILENCE = 60  # seconds after which a browser that says nothing is given up


def found() -> str | None:
    """The path of a browser on this machine; its pipe is handed over as only POSIX systems can."""
    return next((path for name in NAMES if (path := shutil.which(name))), None) if os.name == "posix" else None


def axe() -> str:
    """The script of axe-core, which finds faults of accessibility; the test is skipped where there is none."""
    here = Path(__file__).resolve().parents[1] / "node_modules" / "axe-core" / "axe.min.js"
    places = [Path(place) for place in (os.environ.get("AXE_CORE", ""), str(here)) if place]
    script = next((place for place in places if place.is_file()), None)
    if script is None:
        pytest.skip("NOT TESTED: axe-core is not here: set AXE_CORE to axe.min.js, or run npm install axe-core")
    return script.read_text(encoding="utf-8")


FAULTS = "axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html)])))"


class Page:
    """One page in the browser."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in, self._out, self._number, self._rest = reading, writing, 0, b""
        self._session: str | None = None
        self.heard: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{part}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def call(self, method: str, **settings: Any) -> dict[str, Any]:
        """One command, and what the browser answers."""
        self._number += 1
        reported = {"id": self._number, "method": method, "params": settings}
        if self._session:
            reported["sessionId"] = self._session
        os.write(self._out, json.dumps(reported).encode() + b"\0")
        while (heard := self._next()).get("id") != self._number:
            self.heard.append(heard)
        assert "error" not in heard, heard
        result: dict[str, Any] = heard["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], SILENCE)[0], "the browser says nothing"
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser went away"
            self._rest += piece
        one, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(one)
        return message

    def open(self, path: Path, fragment: str = "") -> None:
        """A file of this machine, until it is loaded."""
        self.heard.clear()
        loader = self.call("Page.navigate", url=path.resolve().as_uri() + fragment).get("loaderId")
        while loader and not any(self._loaded(message, loader) for message in self.heard):
            self.heard.append(self._next())

    @staticmethod
    def _loaded(message: dict[str, Any], loader: str) -> bool:
        told = message.get("params", {})
        return message.get("method") == "Page.lifecycleEvent" and (told["name"], told["loaderId"]) == ("load", loader)

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """A key, down and up."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            more = text if kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)

    def click(self, selector: str) -> None:
        """The middle of an element, with the mouse."""
        box = self.ask(
            f"(r=>[r.x+r.width/2,r.y+r.height/2])(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def prefer(self, **features: str) -> None:
        """What the reader prefers: prefers_color_scheme="dark", prefers_reduced_motion="reduce"."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=wanted)

    def size(self, width: int, height: int) -> None:
        """The size of the window."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self) -> bytes:
        """What is seen, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"])

    def complaints(self) -> list[str]:
        """What went wrong in the page, in its own words."""
        self.ask("0")  # earlier messages have arrived by now
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [json.dumps(message["params"]) for message in self.heard if message.get("method") in kinds]

    def fetched(self) -> list[str]:
        """Every address that the page asked for."""
        asked = (m["params"]["request"]["url"] for m in self.heard if m.get("method") == "Network.requestWillBeSent")
        return list(asked)


@contextmanager
def opened(path: str, folder: Path) -> Iterator[Page]:
    """A browser with a profile of its own, ended when the test is."""
    to_browser, from_browser = os.pipe(), os.pipe()
    flags = [
        "--headless=new",
        "--remote-debugging-pipe",
        f"--user-data-dir={folder}",
        "--no-first-run",
        "--disable-gpu",
    ]
    flags += ["--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"]
    flags += ["--no-sandbox"] if os.geteuid() == 0 else []
    line = f"exec {shlex.join([path, *flags])} 3<&{to_browser[0]} 4>&{from_browser[1]}"
    process = subprocess.Popen(
        ["bash", "-c", line], pass_fds=(to_browser[0], from_browser[1]), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        yield Page(from_browser[0], to_browser[1])
    finally:
        with suppress(BrokenPipeError, OSError):
            os.write(to_browser[1], b'{"id":0,"method":"Browser.close"}\0')
        try:
            process.wait(SILENCE)
        except subprocess.TimeoutExpired:
            process.kill()
        os.close(to_browser[1])
        os.close(from_browser[0])
