"""Records a session from a script: the words are given, and the tools really run on a copy of this
repository.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

OUTPUT_CHARS = 24_000
"""The most characters of one tool's output, like the limits of real agents."""

SCRUBBED = (
    (re.compile(r"\bin \d+\.\d+s\b"), "in 0.4s"),
    (re.compile(r"\b\d+\.\d+ ?ms\b"), "41.7 ms"),
    (re.compile(r"\b0x[0-9a-f]{8,}\b"), "0x7f00deadbeef"),
    (re.compile(r"\bPython 3\.\d+\.\d+\b"), "Python 3"),
    (re.compile(r"(?:\.\./)+(?:[\w.-]+/)+(?=site-packages/)"), ""),
)
"""What differs between machines or runs, and its replacement: durations, addresses, versions."""


class Stage:
    """Collects the messages of a session while the script runs."""

    def __init__(self, scratch: Path, environment: Mapping[str, str] | None = None) -> None:
        """Plays in the folder `scratch`; commands also get the variables of `environment`."""
        self._scratch = scratch
        self._environment = environment or {}
        self._calls = 0
        self.messages: list[dict[str, object]] = []

    def user(self, text: str) -> None:
        """Adds a message of the user."""
        self.messages.append({"role": "user", "content": text})

    def say(self, text: str, *calls: tuple[str, dict[str, object]]) -> None:
        """Adds a message of the agent and runs its tools. Reads run in one turn, other tools one after
        another.
        """
        if any(name != "read" for name, _ in calls):
            for number, call in enumerate(calls):
                self._turn(text if number == 0 else "", call)
        else:
            self._turn(text, *calls)

    def plan(self, text: str, *todos: tuple[str, str]) -> None:
        """Adds a call of TodoWrite. Each task is (status, text)."""
        rows = [{"status": status, "content": content} for status, content in todos]
        done = sum(status == "completed" for status, _ in todos)
        self.called(text, "TodoWrite", {"todos": rows}, f"{done} of {len(rows)} tasks are completed.")

    def delegate(self, text: str, description: str, prompt: str, report: str) -> None:
        """Adds a call that starts a sub-agent, and its report."""
        self.called(text, "Task", {"description": description, "prompt": prompt}, report)

    def called(self, text: str, name: str, arguments: dict[str, object], result: str) -> None:
        """Adds a call of a tool that is only played: its result is given."""
        self._calls += 1
        call_id = f"call_{self._calls:03}"
        call = {"type": "tool_call", "call_id": call_id, "name": name, "arguments": arguments}
        self.messages.append(
            {"role": "assistant", "content": [{"type": "text", "text": text}, call] if text else [call]}
        )
        answer = {"type": "tool_result", "call_id": call_id, "name": name, "content": result}
        self.messages.append({"role": "tool", "content": [answer]})

    def _turn(self, text: str, *calls: tuple[str, dict[str, object]]) -> None:
        blocks: list[dict[str, object]] = [{"type": "text", "text": text}] if text else []
        results: list[dict[str, object]] = []
        for name, arguments in calls:
            self._calls += 1
            call_id = f"call_{self._calls:03}"
            blocks.append({"type": "tool_call", "call_id": call_id, "name": name, "arguments": arguments})
            output, is_error = self._run(name, arguments)
            result = {"type": "tool_result", "call_id": call_id, "name": name, "content": self._scrub(output)}
            if is_error:
                result["is_error"] = True
            results.append({"role": "tool", "content": [result]})
        self.messages.append({"role": "assistant", "content": blocks})
        self.messages.extend(results)

    def _run(self, name: str, arguments: dict[str, object]) -> tuple[str, bool]:
        match name:
            case "read":
                return self._read(**arguments), False
            case "edit":
                return self._edit(**arguments), False
            case "write":
                path = self._scratch / str(arguments["path"])
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(str(arguments["content"]), "utf-8")
                return (
                    f"wrote {arguments['path']} ({len(str(arguments['content']).splitlines())} lines)",
                    False,
                )
            case "bash":
                return self._bash(str(arguments["command"]))
            case _:
                raise ValueError(name)

    def _read(self, path: str, offset: int = 1, limit: int = 2000) -> str:
        lines = (self._scratch / path).read_text("utf-8").splitlines()[offset - 1 : offset - 1 + limit]
        return "\n".join(f"{number:>5}→{line}" for number, line in enumerate(lines, offset))

    def _edit(self, path: str, old_string: str, new_string: str) -> str:
        file = self._scratch / path
        text = file.read_text("utf-8")
        if text.count(old_string) != 1:
            raise SystemExit(
                f"the script no longer fits: {path} has this {text.count(old_string)} times:\n{old_string}"
            )
        file.write_text(text.replace(old_string, new_string), "utf-8")
        return f"edited {path}"

    def _bash(self, command: str) -> tuple[str, bool]:
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self._scratch),
            "PYTHONPATH": "server",
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "LC_ALL": "C.UTF-8",
            **self._environment,
        }
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._scratch,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode:
            text += f"\nexit code {done.returncode}"
        return text, done.returncode != 0

    def _scrub(self, text: str) -> str:
        text = text.replace(f"{self._scratch}/", "").replace(str(self._scratch), ".")
        text = text.replace(str(Path(sys.executable).parents[1]), ".venv")
        for pattern, instead in SCRUBBED:
            text = pattern.sub(instead, text)
        if len(text) > OUTPUT_CHARS:
            text = f"{text[:OUTPUT_CHARS]}\n… ({len(text) - OUTPUT_CHARS} characters more)"
        return text

    def save(self, path: Path) -> None:
        """Writes the session, one message per line, numbered and one minute apart."""
        lines = []
        for number, message in enumerate(self.messages, 1):
            stamped = {"id": f"m{number}", **message, "created_at": 1_790_000_000 + 60 * number}
            lines.append(json.dumps(stamped, ensure_ascii=False))
        path.write_text("\n".join(lines) + "\n", "utf-8")


def scratch_copy(target: Path) -> None:
    """Copies the repository's files without caches to `target`."""
    ignored = shutil.ignore_patterns(
        ".git", ".venv", "__pycache__", "node_modules", ".*_cache", "session.jsonl"
    )
    for name in ("server", "tests", "docs", "pyproject.toml", "protocol.md", "README.md", "CHANGELOG.md"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignored)
        elif source.exists():
            shutil.copy(source, target / name)


def bash(command: str) -> tuple[str, dict[str, object]]:
    """Returns the call of a shell command."""
    return "bash", {"command": command}


def read(path: str, offset: int | None = None, limit: int | None = None) -> tuple[str, dict[str, object]]:
    """Returns the call that reads lines of a file."""
    given = {"offset": offset, "limit": limit}
    return "read", {"path": path, **{name: value for name, value in given.items() if value is not None}}


def edit(path: str, old: str, new: str) -> tuple[str, dict[str, object]]:
    """Returns the call that replaces one place of a file."""
    return "edit", {"path": path, "old_string": old, "new_string": new}


def write(path: str, content: str) -> tuple[str, dict[str, object]]:
    """Returns the call that writes a whole file."""
    return "write", {"path": path, "content": content}
