"""compactd installed in each usual way. Its errors name the command that works there, and its hooks last."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.packaging.test_package import ROOT, built

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

INSTALLERS = ("pipx", "uv")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("dist"), ROOT)


@pytest.fixture(scope="module")
def installers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pipx and uv."""
    folder = tmp_path_factory.mktemp("installers")
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *INSTALLERS]
    subprocess.run([*pip, "--disable-pip-version-check"], check=True, timeout=300)
    return folder / "bin"


class Machine:
    """A home folder, and a PATH with the installers."""

    def __init__(self, home: Path, installers: Path) -> None:
        self.home = home
        names = ("PIP_", "UV_", "SSL_", "REQUESTS_")
        self.env = {name: value for name, value in os.environ.items() if name.startswith(names)}
        self.env |= {
            "HOME": str(home),
            "PATH": f"{home}/.local/bin:{installers}:{Path(sys.executable).resolve().parent}:/usr/bin:/bin",
            "PIPX_DEFAULT_PYTHON": str(Path(sys.executable).resolve()),
        }

    def sh(self, line: str, *, told: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a line in a shell, in the home folder."""
        return subprocess.run(
            ["sh", "-c", line],
            input=told,
            capture_output=True,
            text=True,
            env=self.env,
            cwd=self.home,
            timeout=300,
            check=False,
        )


WAYS = {
    "pipx": ("pipx install {wheel}", "compactd", "pipx inject compactd 'mcp<3,>=2.3'"),
    "pipx of the sources": ("pipx install {root}", "compactd", "pipx inject compactd 'mcp<3,>=2.3'"),
    "uv tool": (
        "uv tool install --with 'textual>=8' {wheel}",
        "compactd",
        "uv tool install --with 'textual>=8' --with 'mcp<3,>=2.3' {wheel}",
    ),
    "uv tool of the sources": (
        "uv tool install {root}",
        "compactd",
        "uv tool install --with 'mcp<3,>=2.3' {root}",
    ),
    "uv": (
        "uv venv --quiet env && uv pip install --quiet --python env/bin/python {wheel}",
        "env/bin/compactd",
        "uv pip install --python {home}/env/bin/python 'mcp<3,>=2.3'",
    ),
    "venv": (
        "python3 -m venv env && env/bin/pip install --quiet {wheel}",
        "env/bin/compactd",
        "{home}/env/bin/python -m pip install 'mcp<3,>=2.3'",
    ),
}
"""Way -> (how compactd is installed, how it is called, how its error says to install the MCP library)."""


@pytest.mark.parametrize("way", WAYS)
def test_the_error_names_a_command_that_works_and_the_hooks_run_a_link_that_lasts(
    way: str, wheel: Path, installers: Path, tmp_path: Path
) -> None:
    install, compactd, hint = (
        text.format(wheel=wheel, root=ROOT, home=tmp_path).replace(
            "python3 -m venv", f"{sys.executable} -m venv"
        )
        for text in WAYS[way]
    )
    here = Machine(tmp_path, installers)
    done = here.sh(install)
    assert done.returncode == 0, done.stderr

    refused = here.sh(f"{compactd} mcp")
    hooks = here.sh(f"{compactd} install claude-code")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == f"Install it with: {hint}"
    command = refused.stderr.splitlines()[-1].removeprefix("Install it with: ")
    done = here.sh(command)
    assert done.returncode == 0, done.stderr
    served = here.sh(f"{compactd} mcp")
    settings = json.loads((tmp_path / ".claude" / "settings.json").read_text())
    hook = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
    ran = here.sh(hook, told='{"hook_event_name": "Stop"}')

    assert (served.returncode, served.stderr) == (0, "")
    is_linked = compactd == "compactd"
    script = f"{tmp_path}/.local/bin/compactd" if is_linked else f"{tmp_path}/env/bin/compactd"
    assert hook == f"{script} hook claude-code"
    assert f"the hooks run {script}. " in hooks.stdout
    assert ("keeps this link" in hooks.stdout) == is_linked
    assert ran.returncode == 0


def test_a_clone_names_its_own_extra(installers: Path, tmp_path: Path) -> None:
    """The extra is not installed: the tests of each run would wait for the backend."""
    here = Machine(tmp_path, installers)
    done = here.sh(
        f"uv venv --seed --quiet env && uv pip install --quiet --python env/bin/python --editable {ROOT}"
    )
    assert done.returncode == 0, done.stderr

    refused = here.sh("env/bin/compactd mcp").stderr
    suite = here.sh("env/bin/compactd conformance").stderr
    from_clone = here.sh(f"cd {ROOT} && {tmp_path}/env/bin/compactd mcp").stderr

    python = f"{tmp_path}/env/bin/python"
    assert f"Install it with: {python} -m pip install --editable '{ROOT}[mcp]'\n" in refused
    assert f"{python} -m pip install --editable {ROOT}/conformance\n" in suite
    assert from_clone.endswith(" -m pip install --editable '.[mcp]'\n")
