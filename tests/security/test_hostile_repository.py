"""A cloned repository brings programs, packages and settings: compactd runs and obeys none of them.

The same repository is opened by each editor in `editors/test_hostile_repository.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import compactd
from tests.support.agent_transcripts import Turn
from tests.support.client import Daemon
from tests.support.command_line import TERMINAL, TIMEOUT_S, environment
from tests.support.git_marks import of_git
from tests.support.hook_runs import Agent
from tests.support.hostile_repository import HostileRepository, hostile_repository
from tests.support.talk import CHARS4, turns, user
from tests.support.terminals import in_terminal

SCRIPT = str(Path(sys.executable).with_name("compactd"))
INTEGRATIONS = Path(__file__).parents[2] / "integrations"


@pytest.fixture
def hostile(tmp_path: Path) -> HostileRepository:
    return hostile_repository(tmp_path)


def ran(
    hostile: HostileRepository, *arguments: object, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """The installed script, run as from the shell of somebody who stands in the repository."""
    home = hostile.root.parent
    return subprocess.run(
        [SCRIPT, *map(str, arguments)],
        input=given,
        cwd=hostile.root,
        env=hostile.environment(environment(home)),
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@of_git
def test_the_traps_of_the_repository_are_traps(hostile: HostileRepository) -> None:
    """A careless program would run the traps. Without this test, the others could not fail."""
    env = hostile.environment(environment(hostile.root.parent))
    for command in (["git", "status"], ["less"], [sys.executable, "-m", "compactd"], ["./run-me"]):
        subprocess.run(command, cwd=hostile.root, env=env, capture_output=True, check=False)
    subprocess.run(
        ["/usr/bin/git", "status"],
        cwd=hostile.root,
        env={"HOME": "/nowhere"},
        capture_output=True,
        check=False,
    )

    sprung = "\n".join(hostile.sprung())

    assert [name in sprung for name in ("git: ", "less: ", "compactd-__init__.py: ", "run-me: ")] == [
        True
    ] * 4


@of_git
def test_no_command_runs_or_imports_what_the_repository_brought_along(hostile: HostileRepository) -> None:
    for arguments in (
        ("inspect", "session.json"),
        ("compact", "session.json", "--target", "1k"),
        ("diff", "session.json", "--target", "1k"),
        ("convert", "session.jsonl", "-", "--to", "pi"),
        ("doctor", "session.jsonl"),
        ("watch", "session.json", "--once"),
        ("models",),
        ("sessions",),
        ("search", "word"),
        ("classify", "session.json"),
        ("install", "claude-code", "--dry-run"),
        ("acp", "--", "agent-of-the-project"),
        ("conformance", "--only", "answers", "--", "agent-of-the-project"),
    ):
        done = ran(hostile, *arguments)
        assert b"Traceback" not in done.stderr, arguments

    assert hostile.sprung() == []


@of_git
def test_no_pager_of_the_repository_is_run(hostile: HostileRepository) -> None:
    home = hostile.root.parent
    env = hostile.environment({**environment(home), **TERMINAL})
    for pager in ("less", "./less", "bin/more -R", "agent-of-the-project"):
        seen = in_terminal(
            hostile.root,
            "models",
            "--provider",
            "openai",
            env={**env, "PAGER": pager},
            # The real `less`, if this machine has one, waits for a key.
            typed=(("\x1b[K", "q"),),
            command=(SCRIPT,),
        )
        assert (pager, seen.code) == (pager, 0)

    assert hostile.sprung() == []


@of_git
def test_an_agent_is_found_on_the_path_outside_the_repository_or_by_its_path_alone(
    hostile: HostileRepository,
) -> None:
    refused = ran(hostile, "acp", "--", "agent-of-the-project")
    before = hostile.sprung()
    named = ran(hostile, "acp", "--", str(hostile.root / "bin" / "agent-of-the-project"))

    assert refused.returncode == 1
    assert b"give its full path" in refused.stderr
    assert before == []
    assert named.returncode == 1
    assert ["bin-agent-of-the-project" in one for one in hostile.sprung()] == [True]


@of_git
@pytest.mark.parametrize("entry", ["", ".", "bin", "{root}", "{root}/bin", "{link}"])
def test_a_diff_runs_no_git_of_the_repository(hostile: HostileRepository, entry: str) -> None:
    link = hostile.root.parent / "link-to-bin"
    link.symlink_to(hostile.root / "bin")
    first = entry.format(root=hostile.root, link=link)
    env = {**environment(hostile.root.parent), "PATH": f"{first}{os.pathsep}{os.environ['PATH']}"}
    with Daemon(hostile.root.parent / "data", env=env, command=(SCRIPT, "serve"), cwd=hostile.root) as daemon:
        session = daemon.call(
            "session/start", compaction=CHARS4, working_dir=str(hostile.root), snapshots=True
        )["session_id"]
        daemon.call("session/append", session_id=session, messages=[user(5)])
        daemon.call("turn/begin", session_id=session)
        (hostile.root / "new.txt").write_text("new\n")
        daemon.call("turn/end", session_id=session, messages=turns(1, 5))
        told = daemon.call("session/diff", session_id=session)

    assert [one["file"] for one in told["files"]] == ["new.txt"]
    assert hostile.sprung() == []


@of_git
@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini-cli"])
def test_hooks_that_install_wrote_run_in_the_repository_without_running_any_of_it(
    hostile: HostileRepository, agent: str
) -> None:
    """Each line is run as the agent runs it: by a shell that stands in the project."""
    home = hostile.root.parent
    for written_by in ((SCRIPT,), (python_without_a_script(home), "-m", "compactd")):
        settings = home / f"settings-{len(written_by)}.json"
        done = subprocess.run(
            [*written_by, "install", agent, "--settings", str(settings)],
            cwd=home,
            env=environment(home),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        events_run = run_hooks(hostile, agent, settings)
        assert len(events_run) >= 4

    assert hostile.sprung() == []


@of_git
@pytest.mark.parametrize(
    ("agent", "file"),
    [
        ("claude-code", "claude-code/hooks/hooks.json"),
        ("codex", "codex/plugins/compactd/hooks/hooks.json"),
    ],
)
def test_hooks_of_the_plugins_run_in_the_repository_without_running_any_of_it(
    hostile: HostileRepository, agent: str, file: str
) -> None:
    """A plugin finds compactd in the user's PATH, of which it ignores relative folders."""
    assert len(run_hooks(hostile, agent, INTEGRATIONS / file, ("", ".", "bin", ".venv/bin"))) >= 4

    assert hostile.sprung() == []


def python_without_a_script(folder: Path) -> str:
    """Return a Python interpreter without a `compactd` script next to it, so that hooks must name the
    module."""
    venv.create(folder / "bare", with_pip=False, symlinks=True)
    [packages] = (folder / "bare").glob("lib/python*/site-packages")
    found = [Path(compactd.__file__).parents[1], Path(sysconfig.get_path("purelib"))]
    (packages / "compactd.pth").write_text("".join(f"{one}\n" for one in found))
    return str(folder / "bare" / "bin" / "python")


def run_hooks(
    hostile: HostileRepository, agent: str, settings: Path, entries: tuple[str, ...] | None = None
) -> list[str]:
    """Runs every hook of a settings file in a shell that stands in the repository; their events."""
    home = hostile.root.parent
    told = Agent(agent, home)
    told.session.say(Turn("user", "Never touch the public API."))
    env = hostile.environment(environment(home))
    if entries is not None:
        real = Path(sys.executable).parent
        env["PATH"] = os.pathsep.join((*entries, str(real), os.environ["PATH"]))
        env["CLAUDE_PLUGIN_OPTION_REDUCE"] = "default"
    hooks = json.loads(settings.read_text())["hooks"]
    for event, groups in hooks.items():
        [command] = [one["command"] for group in groups for one in group["hooks"]]
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            input=json.dumps({**told.session.event(event), "cwd": str(hostile.root)}).encode(),
            cwd=hostile.root,
            env=env,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert (event, done.returncode, done.stderr) == (event, 0, b"")
    return sorted(hooks)
