"""A real browser without a window, driven by the W3C WebDriver protocol over chromedriver."""

import base64
import json
import shutil
import socket
import subprocess
import time
from urllib.request import ProxyHandler, Request, build_opener

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # what the protocol calls an element
KEYS = {"left": "\ue012", "right": "\ue014", "home": "\ue011", "end": "\ue010", "page down": "\ue00f", "tab": "\ue004"}


class Browser:
    """A session of its own, with an empty profile in a directory; ``close`` ends it."""

    def __init__(self, directory):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address, self.opener = f"http://127.0.0.1:{port}", build_opener(ProxyHandler({}))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([DRIVER, f"--port={port}"], **quiet)
        self.session = ""
        options = {"binary": CHROMIUM, "args": [*ARGUMENTS, f"--user-data-dir={directory}"]}
        wanted = {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}
        try:
            self._wait()
            found = self._send("POST", "/session", capabilities=wanted)
        except BaseException:
            self.close()
            raise
        self.session = f"/session/{found['sessionId']}"

    def _wait(self):
        for _ in range(100):
            try:
                return self._send("GET", "/status")
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("chromedriver does not answer")

    def _send(self, method, path, **content):
        body = json.dumps(content).encode() if method == "POST" else None
        request = Request(self.address + path, body, {"Content-Type": "application/json"}, method=method)
        with self.opener.open(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def post(self, path, **content):
        return self._send("POST", self.session + path, **content)

    def close(self):
        try:
            if self.session:
                self._send("DELETE", self.session)
        finally:
            self.process.terminate()
            self.process.wait(20)

    def open(self, path):
        self.post("/url", url=path.resolve().as_uri())

    def run(self, script, *arguments):
        """What a function with this body returns."""
        return self.post("/execute/sync", script=script, args=list(arguments))

    def text(self, selector):
        """The text of an element, as it is shown."""
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def find(self, selector):
        return self.post("/element", using="css selector", value=selector)[ELEMENT]

    def click(self, selector):
        self.post(f"/element/{self.find(selector)}/click")

    def type(self, selector, *keys):
        self.post(f"/element/{self.find(selector)}/value", text="".join(KEYS.get(key, key) for key in keys))

    def fill(self, selector, text):
        self.post(f"/element/{self.find(selector)}/clear")
        self.type(selector, *text)

    def drag(self, start, *stops, kind="mouse"):
        """Press at a point of the window, move over others, and let go."""

        def move(point):
            x, y = map(round, point)
            return {"type": "pointerMove", "duration": 20, "x": x, "y": y, "origin": "viewport"}

        actions = [
            move(start),
            {"type": "pointerDown", "button": 0},
            *map(move, stops),
            {"type": "pointerUp", "button": 0},
        ]
        pointer = {"type": "pointer", "id": kind, "parameters": {"pointerType": kind}, "actions": actions}
        self.post("/actions", actions=[pointer])

    def devtools(self, command, **parameters):
        return self.post("/goog/cdp/execute", cmd=command, params=parameters)

    def resize(self, width, height=900):
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def look(self, dark=False, media="screen"):
        """As a system that is light or dark shows it, on the screen or printed."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def complaints(self):
        """What is in the console."""
        return [entry["message"] for entry in self.post("/se/log", type="browser")]

    def picture(self, path):
        """Write the whole page as a .png file."""
        found = self.devtools("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def print(self, path):
        self.devtools("Emulation.setEmulatedMedia", media="")
        path.write_bytes(base64.b64decode(self.post("/print", background=True)))
