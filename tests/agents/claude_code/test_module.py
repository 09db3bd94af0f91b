"""Claude Code with compactd's plugin, whose module answers at a compaction (2.1.287 or newer): compactd's
summary takes the place of Claude Code's, or the module adds what that one lost. The next request is what
counts."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compactd.core.text.summary_format import LEAD
from tests.agents.claude_code.driven import (
    DOCUMENTED,
    NEWEST,
    OLDEST,
    SUMMARY,
    THRESHOLD,
    ClaudeCode,
    Model,
    Ran,
    given,
    runs,
    says,
    text_of,
    uses,
)
from tests.editors.agents import Json
from tests.support.loopback import Seen

pytestmark = pytest.mark.agent

PLUGIN = Path(__file__).parents[3] / "integrations" / "claude-code"
LIMIT = "Never touch the file legacy_index.py."
SECOND_LIMIT = "Always keep read_row public."
ERROR = "benchmark_run_4417 FAILED in module quux_handler line 88"
CAUSE = "The cause is function read_row in parser.py."
FACTS = "[compactd] Facts of this session"
FULL = THRESHOLD + 1_000
"""A prompt size after which Claude Code compacts by itself."""
OLD_ROW = "row 0-5 of the table"


class Person(ClaudeCode):
    """A person with the plugin."""

    def __init__(
        self, home: Path, model: Model, version: str = NEWEST, *, replaces: bool = True, program: str = ""
    ) -> None:
        path = home / "bin"
        path.mkdir(parents=True)
        script = path / "compactd"
        script.write_text(program or f'#!/bin/sh\nexec {sys.executable} -m compactd "$@"\n')
        script.chmod(0o755)
        super().__init__(home, model, version)
        self.env["PATH"] = f"{path}:{self.env['PATH']}"
        self.plugin = home / "plugin"
        shutil.copytree(PLUGIN, self.plugin)
        options = {"pluginConfigs": {"compactd@inline": {"options": {"replace": replaces}}}}
        self.settings.write_text(json.dumps(options))

    def ask(self, prompt: str, *options: str, check: bool = True, resume: bool = True) -> Ran:
        allowed = ("--allowedTools", "Bash(cat:*)", "Bash(echo:*)", "Agent", "Read")
        plugin = ("--plugin-dir", str(self.plugin))
        return super().ask(prompt, *plugin, *allowed, *options, check=check, resume=resume)

    def change_module(self, change: Callable[[str], str]) -> None:
        file = self.plugin / "hooks" / "register.ts"
        text = file.read_text()
        assert change(text) != text
        file.write_text(change(text))


def work(claude: Person) -> None:
    """Two turns of about 40,000 tokens: two constraints, an error, and much output of tools."""
    for number in range(6):
        rows = "\n".join(f"row {number}-{row} of the table is value_{row * 31}" for row in range(550))
        (claude.work / f"t{number}.txt").write_text(rows)
    reads = [runs(f"cat t{number}.txt") for number in range(4)]
    claude.model.play(runs(f"echo {ERROR}"), *reads, says(CAUSE))
    claude.ask(f"{LIMIT} Why does benchmark_run_4417 fail?")
    claude.model.play(runs("cat t4.txt"), runs("cat t5.txt"), says("Both tables are read."))
    claude.ask(SECOND_LIMIT)


def words(seen: Seen) -> str:
    return "\n".join(text_of(message) for message in seen.body["messages"])


def check_laws(seen: Seen) -> None:
    """Each call has its result in the next message, once."""
    called: list[str] = []
    answered: list[str] = []
    for message in seen.body["messages"]:
        content = message["content"] if isinstance(message["content"], list) else []
        blocks: list[Json] = content
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert set(results) <= set(called)
        answered += results
        if message["role"] == "user":
            assert called == answered or sorted(called) == sorted(answered)
        called += [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert not any("[Tool result missing" in text_of({"content": [block]}) for block in blocks)
    assert len(set(called)) == len(called)
    assert sorted(called) == sorted(answered)


def check_replaced(claude: Person) -> str:
    seen = claude.model.turns[-1]
    check_laws(seen)
    text = words(seen)
    assert text.count(LEAD) == 1
    assert text.count(f"- {LIMIT}") == 1
    assert FACTS not in text
    assert OLD_ROW not in text
    return text


def check_completed(claude: Person) -> str:
    seen = claude.model.turns[-1]
    check_laws(seen)
    text = words(seen)
    assert text.count(FACTS) == 1
    assert LIMIT in text
    assert OLD_ROW not in text
    return text


def test_a_manual_compaction_is_replaced(tmp_path: Path, model: Model) -> None:
    claude = Person(tmp_path / "home", model)
    work(claude)

    claude.compact()
    claude.ask("Go on.")

    assert model.asked == []
    assert "Both tables are read." in check_replaced(claude)
    claude.ask("And then?")
    check_replaced(claude)
    summary, together = claude.state()["kept"]
    assert summary == together > 0.5


@pytest.mark.parametrize("replaces", [True, False])
def test_an_automatic_compaction_in_the_middle_of_a_turn(
    tmp_path: Path, model: Model, replaces: bool
) -> None:
    claude = Person(tmp_path / "home", model, replaces=replaces)
    check = check_replaced if replaces else check_completed
    work(claude)
    model.play(runs("echo first_991"), runs("echo second_992", FULL), says("Both ran.", 20_000))

    claude.ask("Run both.")

    assert claude.compactions() == 1
    assert len(model.asked) == (not replaces)
    text = check(claude)
    assert text.count("second_992") >= 1
    claude.ask("Go on.")
    again = check(claude)
    assert len(again) < len(text) + 20_000, "--continue must not bring back what was compacted"


@pytest.mark.parametrize("replaces", [True, False])
def test_four_compactions_in_a_row(tmp_path: Path, model: Model, replaces: bool) -> None:
    claude = Person(tmp_path / "home", model, replaces=replaces)
    check = check_replaced if replaces else check_completed
    work(claude)

    for number in range(2):
        claude.compact()
        model.play(says(f"Answer {number}."))
        claude.ask(f"Prompt {number}.")
        check(claude)
        model.play(runs("cat t3.txt", 30_000), runs(f"echo again_{number}", FULL), says("Done.", 20_000))
        claude.ask("Run it again.")
        check(claude)

    assert claude.compactions() == 4
    assert claude.state()["compactions"] == 4
    assert words(model.turns[-1]).count(f"- {LIMIT}") == 1


def test_what_claude_codes_summary_lost_is_added(tmp_path: Path, model: Model) -> None:
    claude = Person(tmp_path / "home", model, replaces=False)
    work(claude)
    model.summary = SUMMARY.replace("the work goes on", f"the work goes on. {SECOND_LIMIT}")

    claude.compact()
    claude.ask("Go on.")

    assert len(model.asked) == 1
    text = check_completed(claude)
    assert text.count("Both tables are read.") == 1
    summary, together = claude.state()["kept"]
    assert 0 <= summary < together <= 1


def test_with_instructions_claude_code_compacts(tmp_path: Path, model: Model) -> None:
    claude = Person(tmp_path / "home", model)
    work(claude)

    claude.compact("keep the names of the tables")
    claude.ask("Go on.")

    assert len(model.asked) == 1
    check_completed(claude)


def test_a_sub_agents_compaction_stays(tmp_path: Path, model: Model) -> None:
    claude = Person(tmp_path / "home", model)
    work(claude)
    reads = [runs("cat t1.txt", 30_000), runs("cat t2.txt", FULL)]
    model.scripts["Look at the tables"] = [*reads, says("Seen.", 20_000)]
    prompt = {"description": "look", "prompt": "Look at the tables. Always print 66."}
    kind = {"subagent_type": "general-purpose", "run_in_background": False}
    model.play(uses("Agent", **prompt, **kind), says("It is done."))

    claude.ask("Ask a helper.")
    claude.ask("Go on.")

    assert len(model.asked) == 1
    check_laws(model.turns[-1])
    assert FACTS not in words(model.turns[-1])
    assert claude.state().get("compactions", 0) == 0


@pytest.mark.parametrize(
    "wrong",
    ["throw new Error('x')", "await new Promise(() => undefined)", "return { messages: 3 } as never"],
)
def test_a_module_that_fails_leaves_claude_codes_compaction(tmp_path: Path, model: Model, wrong: str) -> None:
    claude = Person(tmp_path / "home", model)
    begin = "on('session.compact', async ($, e, next) => {"
    claude.change_module(lambda text: text.replace(begin, f"{begin} {wrong}"))
    work(claude)

    claude.compact()
    claude.ask("Go on.")

    assert len(model.asked) == 1
    check_laws(model.turns[-1])
    (facts,) = given(model.turns[-1])
    assert LIMIT in facts


SLOW = """#!/bin/sh
case "$*" in *--deadline*) exec sleep 60;; esac
exec {program} -m compactd "$@"
"""


def test_a_program_that_hangs_leaves_claude_codes_compaction(tmp_path: Path, model: Model) -> None:
    claude = Person(tmp_path / "home", model, program=SLOW.format(program=sys.executable))
    work(claude)

    claude.compact()
    claude.ask("Go on.")

    assert len(model.asked) == 1
    check_laws(model.turns[-1])
    (facts,) = given(model.turns[-1])
    assert LIMIT in facts


@pytest.mark.parametrize(
    "program", ["#!/none\n", "#!/bin/sh\necho '{\"summary\": 3'\n", "#!/bin/sh\nexit 3\n"]
)
def test_without_a_working_program_claude_code_goes_on(tmp_path: Path, model: Model, program: str) -> None:
    claude = Person(tmp_path / "home", model, program=program)
    work(claude)

    claude.compact()
    claude.ask("Go on.")

    assert len(model.asked) == 1
    check_laws(model.turns[-1])


@pytest.mark.parametrize("version", [OLDEST, DOCUMENTED])
def test_older_versions_run_the_hooks_of_the_same_plugin(tmp_path: Path, model: Model, version: str) -> None:
    claude = Person(tmp_path / "home", model, version)
    work(claude)

    claude.compact()
    claude.ask("Go on.")

    assert len(model.asked) == 1
    (facts,) = given(model.turns[-1])
    assert LIMIT in facts


@pytest.mark.parametrize("version", [OLDEST, DOCUMENTED, NEWEST])
def test_the_plugin_is_valid(tmp_path: Path, model: Model, version: str) -> None:
    claude = Person(tmp_path / "home", model, version)

    printed = claude.claude("plugin", "validate", str(claude.plugin))

    assert "Validation passed" in printed
    assert "warning" not in printed
