"""What docs/other-editors.md says on editors without compactd's extension, with Neovim's own LSP client."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.nvim.driven import OLD, binary, headless
from tests.editors.world import daemon_command, make_world

pytestmark = pytest.mark.editor

TALK = """
local id = vim.lsp.START({ name = "compactd", cmd = { "DAEMON", "serve" }, root_dir = "." })
vim.wait(100000, function()
  local client = vim.lsp.get_client_by_id(id)
  return client ~= nil and client.initialized == true or (client ~= nil and client.server_capabilities ~= nil
    and client.server_capabilities.executeCommandProvider ~= nil)
end, 10)
local client = vim.lsp.get_client_by_id(id)
local seen = {}
local function ask(method, params)
  local done = false
  clientREQUEST(method, params, function(problem, result)
    done = true
    seen[#seen + 1] = problem and ("error " .. problem.code) or result
  end)
  vim.wait(100000, function() return done end, 5)
  return seen[#seen]
end
local function execute(command, ...)
  return ask("workspace/executeCommand", { command = command, arguments = { ... } })
end
ask("session/start", { session_id = "s", model = "openai/gpt-4o" })
local messages = {}
for n = 1, 12 do
  messages[n] = { role = n % 2 == 1 and "user" or "assistant", content = ("word "):rep(400) .. n }
end
ask("session/append", { session_id = "s", messages = messages })
local before = execute("compactd.state", { session_id = "s" }).message_count
local compacted = execute("compactd.compact", { keep_messages = 2 }).compacted
local after = execute("compactd.state").message_count
execute("compactd.undo")
local undone = execute("compactd.state").message_count
local title = execute("compactd.sessions").sessions[1].session_id
print("SEEN", before, compacted, after < before, undone, title)
clientSTOP()
"""

CALLS = {
    "new": {"START": "start", "REQUEST": ":request", "STOP": ":stop"},
    "old": {"START": "start_client", "REQUEST": ".request", "STOP": ".stop"},
}
"""The LSP calls of Neovim 0.11, and those of 0.7."""


@pytest.mark.parametrize("which", ["new", "old"])
def test_a_stock_client_runs_the_four_commands(tmp_path: Path, which: str) -> None:
    if which == "old" and not OLD.exists():
        pytest.skip("this system has no Neovim of its own")
    world = make_world(tmp_path)

    talk = TALK.replace("DAEMON", daemon_command())
    for name, call in CALLS[which].items():
        talk = talk.replace(name, call)

    done = headless(world, talk, program=str(OLD) if which == "old" else binary())

    assert "SEEN 12 true true 12 s" in " ".join(done.stderr.split()), done.stderr + done.stdout
