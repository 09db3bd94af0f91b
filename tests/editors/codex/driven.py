"""Codex without a screen: `codex exec` with a fake provider on loopback, compactd's hooks, its own home."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.editors.agents import PATIENCE_S, Json, Lines, environment, packages
from tests.support.loopback import Answer, Loopback, Seen

ASKED = "Summarise the work for the one who goes on."
"""The prompt that asks for a summary. The user may set it, so that the tests can recognise these requests."""
SUMMARY = "The work goes on."
"""The model's summary, which loses every fact."""
WINDOW = 60_000
LIMIT = 11_500
"""The size in tokens at which Codex compacts. Its own prompt and tools take about 7,500 of them."""
BYPASS = "--dangerously-bypass-hook-trust"


class Model:
    """A provider whose summaries lose everything; else it answers by a script."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.server = Loopback(reply=self._reply)

    def _reply(self, seen: Seen) -> Answer:
        if ASKED in json.dumps(seen.body.get("input")):
            return Answer(text=SUMMARY, count_input=True)
        return self.answers.pop(0) if self.answers else Answer(text="Noted.", count_input=True)

    @property
    def turns(self) -> list[Seen]:
        """The requests that were not for a summary."""
        return [seen for seen in self.server.requests if ASKED not in said(seen)]

    @property
    def compactions(self) -> int:
        return len(self.server.requests) - len(self.turns)


def said(seen: Seen) -> str:
    return json.dumps(seen.body.get("input"), ensure_ascii=False)


class Codex:
    """A person's Codex. Each prompt is a process of its own."""

    def __init__(self, home: Path, model: Model, *, trusts: bool = True) -> None:
        self.home, self.model = home, model
        self.work = home / "work"
        self.work.mkdir(parents=True)
        self.folder = home / ".codex"
        self.folder.mkdir()
        self.env = environment(home, {})
        self._program = str(packages("codex") / ".bin" / "codex")
        self._flags = (BYPASS,) if trusts else ()
        self._begun = False
        (self.folder / "config.toml").write_text(
            f'model = "mock-1"\nmodel_provider = "mock"\nmodel_context_window = {WINDOW}\n'
            f'model_auto_compact_token_limit = {LIMIT}\ncompact_prompt = "{ASKED}"\n'
            "check_for_update_on_startup = false\n[model_providers.mock]\n"
            f'name = "mock"\nbase_url = "{model.server.base_url}/v1"\nwire_api = "responses"\n'
            "requires_openai_auth = false\nrequest_max_retries = 0\nstream_max_retries = 0\n"
        )

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
        return done.stdout

    def install(self, options: str = "") -> None:
        """Install compactd's hooks, and add `options` to their command as a user would. Their deadline is
        long, so that a busy machine changes no result."""
        self.run("compactd", "install", "codex")
        hooks = self.folder / "hooks.json"
        options = f"hook codex --deadline 30 {options}".rstrip()
        hooks.write_text(hooks.read_text().replace("hook codex", options))

    def add_recall(self) -> None:
        """Add compactd's MCP server as a user does. It is `required`, because otherwise Codex does not wait
        for it, and on a busy machine the first request lacks its tools. Codex passes only named variables
        on."""
        server = ("compactd", "--env", f"COMPACTD_HOME={self.env['COMPACTD_HOME']}")
        self.run(self._program, "mcp", "add", *server, "--", "compactd", "mcp", "--agent", "codex")
        config = self.folder / "config.toml"
        table = "[mcp_servers.compactd]\n"
        more = "required = true\nstartup_timeout_sec = 60\n"
        config.write_text(config.read_text().replace(table, table + more))

    def trust(self) -> None:
        """Trust all hooks, as a user does with `/hooks`: take Codex's own list with the hash of each hook."""
        with Lines(
            [self._program, "app-server"], cwd=self.work, env=self.env, log=self.home / "log"
        ) as lines:
            about = {"name": "test", "title": "test", "version": "1"}
            lines.write({"id": 1, "method": "initialize", "params": {"clientInfo": about}})
            lines.until(lambda seen: seen.get("id") == 1, "initialize")
            lines.write({"method": "initialized"})
            lines.write({"id": 2, "method": "hooks/list", "params": {"cwds": [str(self.work)]}})
            listed = lines.until(lambda seen: seen.get("id") == 2, "hooks/list")
        hooks: list[Json] = [hook for place in listed["result"]["data"] for hook in place["hooks"]]
        assert hooks
        with (self.folder / "config.toml").open("a") as config:
            for hook in hooks:
                config.write(f'[hooks.state."{hook["key"]}"]\ntrusted_hash = "{hook["currentHash"]}"\n')

    def ask(self, text: str) -> None:
        resumed = ("resume", "--last") if self._begun else ()
        self._begun = True
        flags = (*self._flags, "--skip-git-repo-check", "--json")
        self.run(self._program, "exec", *flags, *resumed, text)

    def go_on(self, session_id: str, text: str) -> None:
        """Resume a session by its id."""
        self.run(self._program, "exec", "--skip-git-repo-check", "--json", "resume", session_id, text)
