"""The built wheels, installed in a fresh environment, with each Python version on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
MOST_BYTES = 4 * 2**20
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
INSTALLERS = {
    "pipx": ("-m", "pipx", "run", "--spec"),
    "uv": ("-m", "uv", "tool", "run", "--quiet", "--from"),
}


def pythons() -> dict[str, Path]:
    """The interpreters of this machine by version: this one, those on the PATH, pyenv's."""
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": Path(sys.executable)}
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for version in PYTHONS:
        on_path = shutil.which(f"python{version}")
        places = [Path(on_path)] if on_path else []
        places += sorted(kept.glob(f"{version}.*/bin/python{version}"))
        for place in places:
            if version not in found and _works(place):
                found[version] = place
    return found


def _works(python: Path) -> bool:
    """A shim of pyenv's is on the PATH for versions too that are not switched on."""
    return subprocess.run([str(python), "-c", "import venv, ensurepip"], capture_output=True).returncode == 0


THERE = pythons()


def built(folder: Path, project: Path) -> Path:
    """The wheel of a project of this checkout; its sdist lies beside."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(project)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("dist"), ROOT)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("suite"), ROOT / "conformance")


class Installed:
    """The wheel in an environment of its own."""

    def __init__(self, python: Path, package: Path, folder: Path) -> None:
        self.folder = folder
        subprocess.run([str(python), "-m", "venv", str(folder / "venv")], check=True, timeout=120)
        self.bin = folder / "venv" / "bin"
        self.install(package)

    def install(self, package: Path) -> None:
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(package)]
        subprocess.run([str(self.bin / "python"), *install], check=True, timeout=300)

    def compactd(self, *arguments: str, told: str = "", home: Path | None = None) -> str:
        """Run the installed command. Return what it prints."""
        done = self.ended(*arguments, told=told, home=home)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ended(
        self, *arguments: str, told: str = "", home: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the installed command. Return how it ended."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        # A later Python removes what this one deprecates.
        env["PYTHONWARNINGS"] = "error::DeprecationWarning,error::PendingDeprecationWarning"
        return subprocess.run(
            [str(self.bin / "compactd"), *arguments],
            input=told,
            capture_output=True,
            text=True,
            env={**env, "COMPACTD_HOME": str(home or self.folder / "data")},
            cwd=self.folder,
            timeout=120,
            check=False,
        )

    def asked(self, home: Path, *requests: tuple[str, dict[str, object]]) -> list[dict[str, object]]:
        """The answers of a daemon that is asked all at once and told to go."""
        lines = [
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            for number, (method, params) in enumerate(requests)
        ]
        said = self.compactd("serve", told="".join(f"{line}\n" for line in lines), home=home)
        answers = {one["id"]: one for one in map(json.loads, said.splitlines()) if "id" in one}
        return [answers[number]["result"] for number in range(len(requests))]


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_what_is_built_is_small_and_the_same_each_time(wheel: Path, suite: Path, tmp_path: Path) -> None:
    again = built(tmp_path / "dist", ROOT), built(tmp_path / "suite", ROOT / "conformance")

    assert wheel.stat().st_size + suite.stat().st_size <= MOST_BYTES
    assert [digests(one.parent) for one in (wheel, suite)] == [digests(one.parent) for one in again]


def test_the_commands_work_without_the_suite_and_conformance_works_with_it(
    wheel: Path, suite: Path, tmp_path: Path
) -> None:
    here = Installed(Path(sys.executable), wheel, tmp_path)
    session = str(shutil.copy(ROOT / "examples" / "session.jsonl", tmp_path))

    anatomy = json.loads(here.compactd("inspect", session, "--json"))
    compacted = json.loads(here.compactd("compact", session, "--target", "8k", "--json"))
    chat = here.compactd("chat", "--echo", told="Hello, who is there?\n")
    [pong] = here.asked(tmp_path / "pinged", ("daemon/ping", {}))
    refused = here.ended("conformance", "--only", "framing-lines")
    here.install(next(suite.parent.glob("*.tar.gz")))
    tested = here.ended("conformance", "--only", "framing-lines", "--patience", "60")

    assert anatomy["used"]["tokens"] > 8_000
    assert compacted["tokens_after"] <= 8_000
    assert chat.endswith("\nHello, who is there?\n")
    assert pong == {}
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"{here.bin}/python -m pip install ./compactd_conformance-" in refused.stderr
    assert (tested.returncode, tested.stderr) == (0, "")
    assert "\n1 of 1 passed\n" in tested.stdout


def test_it_is_enough_on_each_python_and_each_compacts_a_journal_to_the_same_bytes(
    wheel: Path, tmp_path: Path
) -> None:
    """Issue's law of determinism: the same journal, two versions of Python, the same bytes."""
    journal = tmp_path / "journal"
    lines = (ROOT / "examples" / "session.jsonl").read_text("utf-8").splitlines()
    messages = [one for one in map(json.loads, lines) if one["role"] != "system"]
    contexts: dict[str, str] = {}
    for version, python in THERE.items():
        folder = tmp_path / version
        folder.mkdir()
        here = Installed(python, wheel, folder)
        if not journal.exists():
            start = ("session/start", {"session_id": "one", "model": "anthropic/claude-sonnet-4-5"})
            here.asked(journal, start, ("session/append", {"session_id": "one", "messages": messages}))
        shutil.copytree(journal, folder / "home")
        session: dict[str, object] = {"session_id": "one"}

        schema = json.loads(here.compactd("schema"))
        model = json.loads(here.compactd("models", "anthropic/claude-sonnet-4-5", "--json"))
        [count] = here.asked(
            folder / "other", ("tokens/count", {"text": "one two", "model": "openai/gpt-4o"})
        )
        _, done, context = here.asked(
            folder / "home",
            ("session/start", session),
            ("session/compact", {**session, "keep_recent": 3000}),
            ("session/context", session),
        )

        assert model["context_window"] == 200_000
        assert "session/start" in schema["properties"]["requests"]["properties"]
        assert count == {"tokens": 2, "exact": True, "method": "o200k_base"}
        assert done["compacted"] is True
        ids = re.compile(re.escape(str(done["compaction_id"])))
        contexts[version] = ids.sub("ID", json.dumps(context["messages"]))
    assert len(set(contexts.values())) == 1, sorted(contexts)


def test_the_plain_install_loads_no_app(wheel: Path, tmp_path: Path) -> None:
    here = Installed(Path(sys.executable), next(wheel.parent.glob("*.tar.gz")), tmp_path)
    code = "import compactd.client, compactd.cli, sys; print('textual' in sys.modules)"
    seen = subprocess.run(
        [str(here.bin / "python"), "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )

    assert seen.stdout == "False\n"
    ping = here.compactd("serve", told='{"jsonrpc":"2.0","id":1,"method":"daemon/ping"}\n')
    assert json.loads(ping)["id"] == 1


@pytest.mark.parametrize("installer", INSTALLERS)
def test_it_starts_without_being_installed(installer: str, wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", installer]
    subprocess.run(install, check=True, timeout=300)
    env = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(
        [python, *INSTALLERS[installer], str(wheel), "compactd", "--version"],
        capture_output=True,
        text=True,
        env=env,
        cwd=tmp_path,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("compactd ")


@pytest.mark.parametrize("version", PYTHONS)
def test_the_index_has_a_wheel_of_every_package_in_the_lock(version: str, tmp_path: Path) -> None:
    """Nobody who installs compactd needs a compiler. pip reads markers for the Python that runs it, so they
    are evaluated here.
    """
    target = {"python_version": version, "python_full_version": f"{version}.0"}
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    pins = [Requirement(line.removesuffix("\\")) for line in lines if "==" in line and line[0].isalnum()]
    wanted = [
        f"{one.name}{one.specifier}" for one in pins if one.marker is None or one.marker.evaluate(target)
    ]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--quiet",
        "--ignore-installed",
        "--no-deps",
    ]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--ignore-requires-python"]
    done = subprocess.run(
        [*command, "--python-version", version, "--target", str(tmp_path), *wanted],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert len(wanted) >= 20
    assert done.returncode == 0, done.stderr
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    assert f"Programming Language :: Python :: {version}" in classifiers
