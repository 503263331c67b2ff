"""A real JupyterLab server, a headless Chromium and the panel on its page, for the browser tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from conftest import ROOT

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
BROWSER_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SETTINGS = {
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": {"fetchNews": "false"},
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"},
    "@jupyterlab/docmanager-extension/plugin.jupyterlab-settings": {"autosave": False},
}
PATIENCE_MS = 90_000
SHOTS = Path(os.environ.get("PACKTOOLS_SCREENSHOTS", ROOT / "build" / "screenshots"))
FRONTS = {"lab": "lab/tree/", "notebook": "notebooks/", "voila": "voila/render/"}
KERNEL_IS_IDLE = (
    "() => { const w = window.jupyterapp?.shell?.currentWidget; const s = w?.sessionContext;"
    " return s?.isReady && s.session?.kernel?.status === 'idle'; }"
)


@contextmanager
def lab_server(root: Path, home: Path) -> Iterator[str]:
    """Serve a folder; give the address of the server with its token."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER")}
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    for name, folder in folders.items():
        env[name] = str(home / folder)
        (home / folder).mkdir(parents=True)
    for name, values in SETTINGS.items():
        path = home / "settings" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0",
        "--IdentityProvider.token=browser-test",
        f"--ServerApp.root_dir={root}",
        "--ServerApp.terminals_enabled=False",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]
    log = (home / "server.log").open("w")
    server = subprocess.Popen(command, env=env, cwd=root, stdout=log, stderr=log)
    try:
        yield _address(server, home)
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        log.close()


def _address(server: subprocess.Popen, home: Path) -> str:
    info = home / "runtime" / f"jpserver-{server.pid}.json"
    for _ in range(600):
        if server.poll() is not None:
            raise RuntimeError((home / "server.log").read_text())
        if info.exists() and info.read_text().strip():
            url = json.loads(info.read_text())["url"]
            try:
                with urllib.request.urlopen(f"{url}api/status?token=browser-test", timeout=5):
                    return url
            except OSError:
                pass
        time.sleep(0.1)
    raise RuntimeError("JupyterLab did not start: " + (home / "server.log").read_text())


@contextmanager
def open_notebook(
    url: str, notebook: str, width: int = 1500, height: int = 1250, front: str = "lab", run: bool = True
):
    """Open a notebook in Chromium, run all its cells, and give the page.

    Parameters
    ----------
    url : str
        Of `lab_server`.
    notebook : str
        Path below the folder that is served.
    front : "lab", "notebook" or "voila"
        The last two where they are installed: the same server has them. Voila always runs the cells.
    run : bool
        Whether to run the cells.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=BROWSER_ARGS)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(PATIENCE_MS)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{url}{FRONTS[front]}{quote(notebook)}?token=browser-test&reset")
        if front != "voila":
            page.wait_for_function(KERNEL_IS_IDLE)
            if front == "notebook":
                errors.clear()  # Notebook 7.6 raises one of its own while it reads its keyboard shortcuts
            if run:
                page.evaluate("() => window.jupyterapp.commands.execute('runmenu:run-all')")
        try:
            yield page
            assert errors == []
        finally:
            browser.close()


class Panel:
    """Read and move the panel on a page, in whatever front end it is."""

    def __init__(self, page) -> None:
        self.page = page
        page.wait_for_selector(".packtools-status >> text=ready", state="attached")
        page.locator(".packtools-picture img").scroll_into_view_if_needed()
        self.handle = page.locator(".packtools-budget-slider .noUi-handle")

    def text(self, name: str) -> str:
        return self.page.locator(f".packtools-{name}").first.inner_text()

    def picture(self) -> str:
        return self.page.locator(".packtools-picture img").get_attribute("src")

    def tokens(self) -> int:
        return int(re.search(r"\(([\d,]+) of", self.text("answer")).group(1).replace(",", ""))

    def budget(self) -> int:
        return int(self.page.locator(".packtools-budget input").input_value())

    def changed(self, before: str) -> None:
        """Wait for another picture, then until all parts agree and the kernel has nothing more to do."""
        self.page.wait_for_function(
            "old => document.querySelector('.packtools-picture img')?.src !== old", arg=before
        )
        self.page.wait_for_function(
            "() => { const k = window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;"
            " const alt = document.querySelector('.packtools-picture img').alt;"
            " const words = document.querySelector('.packtools-answer').innerText;"
            " const n = words.match(/[(]([0-9,]+) of/);"
            " return (!k || k.status === 'idle') && n && alt.includes(n[1] + ' of'); }"
        )

    def shot(self, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")
