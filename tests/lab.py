"""A real JupyterLab server and a headless Chromium, for the browser tests."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
def open_notebook(url: str, notebook: str, width: int = 1500, height: int = 1250):
    """Open a notebook in Chromium, run all its cells, and give the page once the kernel is idle."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=BROWSER_ARGS)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(PATIENCE_MS)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{url}lab/tree/{notebook}?token=browser-test&reset")
        page.wait_for_function(
            "() => { const w = window.jupyterapp?.shell?.currentWidget; const s = w?.sessionContext;"
            " return s?.isReady && s.session?.kernel?.status === 'idle'; }"
        )
        page.evaluate("() => window.jupyterapp.commands.execute('runmenu:run-all')")
        try:
            yield page
            assert errors == []
        finally:
            browser.close()
