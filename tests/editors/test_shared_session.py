"""VS Code, Neovim and `compactd chat` on one session of one shared daemon, all of them real."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.editors.nvim.driven import Neovim
from tests.editors.terminal import Terminal, program, wait_for
from tests.editors.vscode.house import HERE, House, fresh, modules, package
from tests.editors.vscode.told import Window
from tests.editors.world import World, is_alive, kill_and_wait, make_world
from tests.support.client import Daemon
from tests.support.loopback import Answer, Gated, Loopback
from tests.support.loopback.seen import Seen
from tests.support.own_loop import environment

pytestmark = [pytest.mark.editor, pytest.mark.timeout(900)]

WINDOW = 60_000
SUMMARY = "## Goal\nThe loader keeps empty files.\n"
CODE, NVIM, CHAT = "compactd for VS Code", "compactd.nvim", "compactd chat"


SAID = """
local space = vim.api.nvim_get_namespaces()["compactd.chat"]
local said = {}
for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
  if vim.api.nvim_buf_get_name(buffer):find("/chat$") then
    for row, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
      local from, to = { row - 1, 0 }, { row - 1, -1 }
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, space, from, to, { details = true })) do
        for _, chunk in ipairs(mark[4].virt_text or {}) do
          line = line .. chunk[1]
        end
      end
      table.insert(said, line)
    end
  end
end
return table.concat(said, "\\n")
"""
"""Returns the text of the conversation's buffer in Neovim."""


class Model:
    """The model's answers. One that holds back waits in the middle until the test lets it go on."""

    def __init__(self) -> None:
        self.gates: dict[str, threading.Event] = {}
        self.asked: list[str] = []
        """The newest words of the user in each request."""

    def hold(self, words: str) -> None:
        """Hold the answer to a prompt with these words, or with "summary" the summary of a compaction."""
        self.gates[words] = threading.Event()

    def let_go(self, words: str) -> None:
        self.gates[words].set()

    def reply(self, seen: Seen) -> Gated:
        """Answer a request in OpenAI's shape."""
        newest = text_of([one for one in seen.body["messages"] if one["role"] == "user"][-1]["content"])
        is_prompt = newest.startswith("Prompt ")
        self.asked.append(newest if is_prompt else "summary")
        gate = next((gate for words, gate in self.gates.items() if words in self.asked[-1]), None)
        if gate is None:
            gate = threading.Event()
            gate.set()
        text = f"Begun: {newest} And so it ended: {newest[:8]}." if is_prompt else SUMMARY
        return Gated(Answer(text=text, count_input=True, chunk_chars=6), gate, 6)


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


class Shared:
    """The home of the three clients, and one more that looks on."""

    def __init__(self, folder: Path, sockets: Path, base_url: str) -> None:
        self.world = make_world(folder)
        self.more = {
            **environment("openai", base_url),
            "COMPACTD_SHARED": "1",
            "COMPACTD_IDLE_EXIT": "2",
            "XDG_RUNTIME_DIR": str(sockets),
            "COMPACTD_HOME": self.world.env["COMPACTD_HOME"],
            "XDG_CONFIG_HOME": self.world.env["XDG_CONFIG_HOME"],
        }
        self.session = ""

    def world_of(self) -> World:
        return SharedWorld(self.world.home, self.world.workspace, self.more)

    def looker(self) -> Daemon:
        """Return a client that looks on."""
        home = self.world.home / "sessions"
        return Daemon(home, env=self.more, command=(sys.executable, "-m", "compactd", "attach"))

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Return what the daemon answers to a client that leaves at once."""
        with self.looker() as client:
            return client.call(method, **params)

    def daemon_pid(self) -> int:
        return int(self.ask("daemon/info")["pid"])

    def chat(self) -> Terminal:
        command = [program("compactd", install="pip install -e ."), "chat", "--session", self.session]
        world = self.world_of()
        return Terminal(command, cwd=world.workspace, env=world.env, columns=100, lines=50)


class SharedWorld(World):
    """A world whose programs share a daemon."""

    def __init__(self, home: Path, workspace: Path, more: dict[str, str]) -> None:
        super().__init__(home=home, workspace=workspace)
        object.__setattr__(self, "more", more)

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, **self.more}  # type: ignore[attr-defined]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def shared(tmp_path: Path, model: Model) -> Iterator[Shared]:
    sockets = Path(tempfile.mkdtemp(prefix="c", dir="/tmp"))
    with Loopback(reply=model.reply) as provider:
        one = Shared(tmp_path, sockets, provider.base_url)
        try:
            yield one
        finally:
            end_daemons(sockets)
            shutil.rmtree(sockets, ignore_errors=True)


def end_daemons(sockets: Path) -> None:
    """Kill the daemons that still run for a test."""
    for pid in daemons(sockets):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not daemons(sockets), "the end of the daemons")


def daemons(sockets: Path) -> list[int]:
    """Return the process ids of the shared daemons that listen in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        is_listening = b"--listen" in command and any(str(sockets).encode() in word for word in command)
        if entry.name.isdigit() and is_listening and is_alive(int(entry.name)):
            found.append(int(entry.name))
    return found


def tree(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    done = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    found = [pid]
    for parent in found:
        found += [child for child, its in pairs if its == parent]
    return found


def say(terminal: Terminal, text: str) -> None:
    """Send a line of the chat."""
    terminal.type(text)
    terminal.press("Enter")


def say_in_nvim(editor: Neovim, text: str) -> None:
    """Send a prompt from the conversation's buffer."""
    editor.terminal.press("Escape")
    editor.terminal.type(f"Gi{text}")
    editor.terminal.press("C-s")
    editor.terminal.press("Escape")


def in_nvim(editor: Neovim) -> str:
    """Return the text of the conversation's buffer, with the words behind its lines."""
    return str(editor.lua(SAID))


def see_in_nvim(editor: Neovim, text: str) -> str:
    seen = ""

    def look() -> str | None:
        nonlocal seen
        seen = in_nvim(editor)
        return seen if text in seen else None

    try:
        return wait_for(look, text)
    except AssertionError:
        raise AssertionError(f"never seen: {text}\n{seen}\n{editor.log()}") from None


def prompts(shared: Shared) -> list[str]:
    """Return the stored prompts, oldest first."""
    with shared.looker() as client:
        client.call("session/start", session_id=shared.session, read_only=True)
        entries = client.call("session/history", session_id=shared.session)["entries"]
    messages = [entry["message"] for entry in entries if entry["kind"] == "message"]
    return [text_of(one["content"]) for one in messages if one["role"] == "user"]


def begin(shared: Shared, stack: ExitStack, tmp_path: Path) -> tuple[House, Window, Neovim]:
    """Start VS Code and Neovim on a new session."""
    assert (modules() / ".installed").exists(), f"run {HERE / 'setup.sh'} first"
    settings = {
        "compactd.command": [program("compactd", install="pip install -e .")],
        "compactd.model": "openai/gpt-4o",
        "compactd.compaction": {"context_window": WINDOW},
        "compactd.startTimeout": 60,
    }
    house = stack.enter_context(House(fresh(tmp_path / "code"), package(), settings, shared.more))
    code = stack.enter_context(Window(house, shared.world.workspace, "shared"))
    code.do("chat", "compactd: New Chat")
    shared.session = wait_for(
        lambda: next((one["session_id"] for one in shared.ask("session/list")["sessions"]), None), "a session"
    )
    nvim = stack.enter_context(open_nvim(shared))
    return house, code, nvim


def open_nvim(shared: Shared) -> Neovim:
    setup = {"cmd": [program("compactd", install="pip install -e ."), "serve"]}
    return Neovim(shared.world_of(), setup, columns=110, lines=40)


def show_in_nvim(shared: Shared, nvim: Neovim) -> None:
    given = json.dumps({"session_id": shared.session})
    nvim.lua(
        f"require('compactd.sessions').start(vim.json.decode([==[{given}]==]), function(_, session)"
        " require('compactd.chat').open(session) end)"
    )
    see_in_nvim(nvim, "you: <CR>")


def test_three_clients_see_each_other_and_survive_each_other(
    shared: Shared, model: Model, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        house, code, nvim = begin(shared, stack, tmp_path)
        show_in_nvim(shared, nvim)
        chat = stack.enter_context(shared.chat())
        chat.see("ask, or / for commands")
        first = shared.daemon_pid()

        # Each sees the prompts of the others and their answers as they stream.
        model.hold("Prompt 1")
        say_in_nvim(nvim, "Prompt 1 of Neovim.")
        code.see("Begun: Prompt 1")
        chat.see("Begun: Prompt 1")
        seen = code.see(f"You ({NVIM})")
        assert "Prompt 1 of Neovim." in seen
        assert f"from {NVIM}" in chat.see("Prompt 1 of Neovim.")
        # While it is answered, nobody compacts or takes back, and is told why.
        say(chat, "/compact --keep 1")
        chat.see("is being answered")
        model.let_go("Prompt 1")
        for see in (code.see, chat.see, lambda text: see_in_nvim(nvim, text)):
            see("ended: Prompt 1.")

        code.do("say", "Prompt 2 of VS Code.")
        chat.see("ended: Prompt 2.")
        see_in_nvim(nvim, f"Prompt 2 of VS Code. (from {CODE})")
        see_in_nvim(nvim, "ended: Prompt 2.")
        say(chat, "Prompt 3 of the chat.")
        code.see(f"You ({CHAT})")
        code.see("ended: Prompt 3.")
        see_in_nvim(nvim, f"Prompt 3 of the chat. (from {CHAT})")
        see_in_nvim(nvim, "ended: Prompt 3.")

        # One compacts while another prompts: the prompt waits, and all see both. A third takes it back.
        model.hold("summary")
        say(chat, "/compact --keep 1")
        wait_for(lambda: "summary" in model.asked, "the request for a summary")
        say_in_nvim(nvim, "Prompt 4 waits.")
        see_in_nvim(nvim, "Prompt 4 waits. (waits until the answer before it is done)")
        model.let_go("summary")
        code.see(f"by {CHAT}")
        see_in_nvim(nvim, f"(by {CHAT})")
        for see in (code.see, chat.see, lambda text: see_in_nvim(nvim, text)):
            see("ended: Prompt 4.")
        assert "waits until" not in in_nvim(nvim)
        code.do("command", "compactd: Undo the Last Compaction")
        chat.see(f"{CODE} undid a compaction")
        see_in_nvim(nvim, f"{CODE} took the compaction back")
        assert "(no longer in force)" in in_nvim(nvim)
        code.see("no longer in force")

        # The daemon dies: all of them join the next one, and show the same conversation.
        attached = nvim.pid()
        kill_and_wait(first)
        joined_again = f"local _, pid = require('compactd.daemon').ids() return pid and pid ~= {attached}"
        nvim.until(joined_again, "another daemon")
        say_in_nvim(nvim, "Prompt 5 after the end.")
        for see in (code.see, chat.see, lambda text: see_in_nvim(nvim, text)):
            see("ended: Prompt 5.")
        assert shared.daemon_pid() != first
        for seen in (code.see("ended: Prompt 5."), in_nvim(nvim)):
            for number in range(1, 6):
                assert seen.count(f"ended: Prompt {number}.") == 1
                assert seen.count(f"Prompt {number} ") == 2, seen  # the prompt, and its answer's words
        code.do("shot", "three")

        # The chat is killed in the middle of its prompt. The others are not stuck.
        model.hold("Prompt 6")
        say(chat, "Prompt 6 of the chat.")
        see_in_nvim(nvim, "Begun: Prompt 6")
        kill_and_wait(chat.pid())
        see_in_nvim(nvim, "stopped")
        model.let_go("Prompt 6")
        code.do("say", "Prompt 7 of VS Code.")
        code.see("ended: Prompt 7.")
        see_in_nvim(nvim, "ended: Prompt 7.")

        # VS Code is killed, Neovim goes on; Neovim is killed, a new chat goes on.
        served = daemons(Path(shared.more["XDG_RUNTIME_DIR"]))
        for pid in reversed(tree(house.process.pid)):
            if pid not in served:
                os.kill(pid, signal.SIGKILL)
        say_in_nvim(nvim, "Prompt 8 of Neovim.")
        see_in_nvim(nvim, "ended: Prompt 8.")
        os.kill(int(nvim.lua("return vim.fn.getpid()")), signal.SIGKILL)
        with shared.chat() as last:
            last.see("ended: Prompt 8.")
            say(last, "Prompt 9 of the last.")
            last.see("ended: Prompt 9.")
            say(last, "/quit")

        assert prompts(shared) == [
            "Prompt 1 of Neovim.",
            "Prompt 2 of VS Code.",
            "Prompt 3 of the chat.",
            "Prompt 4 waits.",
            "Prompt 5 after the end.",
            "Prompt 6 of the chat.",
            "Prompt 7 of VS Code.",
            "Prompt 8 of Neovim.",
            "Prompt 9 of the last.",
        ]
        sockets = Path(shared.more["XDG_RUNTIME_DIR"])
        wait_for(lambda: not daemons(sockets), "the end of the daemon that nobody needs")
