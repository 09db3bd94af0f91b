"""Session files of other agents, written from each program's own source code
(tests/support/fixtures/sessions)."""

from __future__ import annotations

import json

import pytest

from compactd.core.authors.authors import is_typed
from compactd.core.tokens.usage import normalise
from compactd.formats.files.detect import read
from compactd.formats.files.session_file import SessionFile
from compactd.protocol.messages import Usage
from tests.unit.formats.outlined import FIXTURES, outline

PICTURE = "[image/png 96]"

PYTEST = r'"{\"command\":[\"pytest\",\"-q\"]}"'

CODEX = [
    "user synthetic: <permissions instructions>\nread only\n</permissions instructions>",
    "user synthetic: <environment_context>\n<cwd>/home/me/ledger</cwd>\n</environment_context>",
    f"user: Why does the cache test fail? | {PICTURE}",
    f"assistant: [openai_responses] | (Look at the test) | shell#call_1 {PYTEST}",
    "tool: shell#call_1 failed: 1 failed",
    'assistant: The etag is missing. | apply_patch#call_2 "*** Begin Patch\\n*** End Patch"',
    "tool: apply_patch#call_2: Done",
    "user summary: Another language model started to solve this problem.\nThe cache test was fixed.",
    "user: Now the docs.",
    "assistant: Written.",
]
GEMINI_CLI = [
    "user: What is in a.py?",
    'assistant: (Plan\nread the test) | I look. | read_file#read-1 {"path": "a.py"}',
    "tool: read_file#read-1: x = 1",
    "assistant: One line.",
    "user: And b.py?",
    'assistant: read_file#read-2 {"path": "b.py"}',
    "tool: read_file#read-2 failed: no such file",
    "user summary: The user asked about a.py.",
    "assistant: Got it.",
    "user: Thanks.",
]
CLINE = [
    "user: <task>\nFix the cache\n</task> | <environment_details>\n# Cwd\n</environment_details>",
    'assistant: (hm signed) | I read it. | read_file#t1 {"path": "cache.py"}',
    f"tool: read_file#t1 failed: x = 1 + {PICTURE}",
    "user: The user provided the following feedback:\n<feedback>\ngo on\n</feedback>",
]
ROO = [
    "user: Fix it",
    "assistant: Fixed.",
    "user summary: ## Conversation Summary\nIt was fixed.",
    "assistant: On it.",
]
OPENCODE = [
    f"user: Why is it red? | {PICTURE}",
    'assistant: (hm signed) | I look. | read#c1 {"filePath": "a.py"} | bash#c2 {"command": "false"}',
    "tool: read#c1: x = 1",
    "tool: bash#c2 failed: exit 1",
    "user: Go on.",
    "assistant: Done.",
    "user summary: ## Goal\nThe colour.",
    "user synthetic: Continue if you have next steps",
]
MINI = [
    "system: You fix issues.",
    "user: Fix it.",
    'assistant: I list. | bash#c1 "{\\"command\\": \\"ls\\"}"',
    "tool: bash#c1 failed: <returncode>2</returncode>\n<output>\nls: no\n</output>",
]
OPENHANDS = [
    "user: Make hello.py | [image/png https://example.org/a.png]",
    'assistant: I look. | terminal#c1 "{\\"command\\": \\"ls\\"}" | terminal#c2 "{\\"command\\": \\"pwd\\"}"',
    "tool: terminal#c1: a.py",
    "tool: terminal#c2: /repo",
    'assistant: file_editor#c3 "{\\"command\\": \\"create\\", \\"path\\": \\"hello.py\\"}"',
    "tool: file_editor#c3 failed: no such folder",
    "user summary: The folder was listed.",
    "assistant: (hm) | It failed.",
]
OPENHANDS_V0 = [
    "user: Make it",
    'assistant: I look. | execute_bash#c1 "{\\"command\\": \\"ls\\"}"',
    "tool: execute_bash#c1 failed: a.py",
    "user summary: It was listed.",
    "assistant: All done",
]
AIDER = [
    "user synthetic: # aider chat started at 2026-03-01 10:00:00",
    "user synthetic: aider --model sonnet\nRepo-map: using 1024 tokens",
    "user: why is it red?\nlook at a.py",
    "assistant: It is red because of `x`:\n\na.py\n```\nx = 1\n```",
    "user synthetic: Applied edit to a.py",
    "user: /undo",
    "user synthetic: Nothing to undo.",
]
KLAUDE = [
    "system: You are klaude.",
    f"user: Why red? | {PICTURE}",
    "user synthetic: <system-reminder>todo</system-reminder>",
    'assistant: (hm signed) | I look. | Read#c1 "{\\"file_path\\":\\"a.py\\"}"',
    "tool: Read#c1 failed: no such file",
    "user: Try b.py",
    "user summary: <summary>It was red.</summary>",
]
OPAL = [
    "user summary: [Conversation summary — older messages were compacted]\n\nIt was red.",
    'assistant: (hm) | I look. | read_file#c1 {"path": "b.py"}',
    "tool: read_file#c1 failed: no such file",
    "user: Try c.py",
]

FILES = [
    ("codex.jsonl", "codex", CODEX),
    ("gemini-cli.jsonl", "gemini-cli", GEMINI_CLI),
    ("cline-task.json", "cline", CLINE),
    ("roo.json", "cline", ROO),
    ("opencode.json", "opencode", OPENCODE),
    ("mini-swe-agent-2.traj.json", "mini-swe-agent", MINI),
    ("openhands.json", "openhands", OPENHANDS),
    ("openhands-v0.json", "openhands", OPENHANDS_V0),
    ("aider.md", "aider", AIDER),
    ("klaude.jsonl", "klaude", KLAUDE),
    ("opal.jsonl", "opal", OPAL),
]


def fixture(name: str) -> SessionFile:
    return read((FIXTURES / name).read_bytes())


@pytest.mark.parametrize(("name", "format", "expected"), FILES, ids=[name for name, _, _ in FILES])
def test_a_file_of_another_agent_is_known_by_its_content_and_read_whole(
    name: str, format: str, expected: list[str]
) -> None:
    file = fixture(name)

    assert (file.format, outline(file)) == (format, expected)


@pytest.mark.parametrize(
    ("name", "about"),
    [
        (
            "codex.jsonl",
            ("0198-codex", None, "openai/gpt-5.2-codex", "/home/me/ledger", "You are a coding agent."),
        ),
        ("codex-2025-06.jsonl", ("old-codex", None, None, None, "Be brief.")),
        ("gemini-cli.jsonl", ("gem-1", "Two files", "google/gemini-3-pro", "/home/me/ledger", None)),
        ("gemini-cli.json", ("gem-0", None, "google/gemini-2.5-pro", None, None)),
        ("cline-task.json", (None, None, "anthropic/claude-sonnet-4-5", None, None)),
        ("opencode.json", ("ses_1", "The colour", "anthropic/claude-sonnet-4-5", "/home/me/ledger", None)),
        ("mini-swe-agent-2.traj.json", (None, None, "anthropic/claude-sonnet-4-5", "/testbed", None)),
        ("openhands.json", (None, None, None, None, "You are OpenHands.")),
        ("openhands-v0.json", (None, None, "claude-sonnet-4", None, "You are OpenHands agent.")),
        ("klaude.jsonl", (None, None, "anthropic/claude-sonnet-4-5", None, None)),
        ("opal.jsonl", ("opal-1", "Red", None, "/home/me/ledger", None)),
    ],
)
def test_what_a_file_says_of_its_session_is_read(name: str, about: tuple[str | None, ...]) -> None:
    file = fixture(name)

    assert (file.session_id, file.title, file.model, file.working_dir, file.system_prompt) == about


@pytest.mark.parametrize(
    ("name", "first_kept", "pinned"),
    [
        ("codex.jsonl", (), ((7, (2,)),)),
        ("gemini-cli.jsonl", ((7, 4),), ()),
        ("roo.json", (), ()),
        ("opencode.json", ((6, 4),), ()),
        ("openhands.json", ((6, 4),), ((6, (0,)),)),
        ("openhands-v0.json", (), ((3, (0,)),)),
        ("klaude.jsonl", ((6, 5),), ()),
        ("opal.jsonl", (), ()),
    ],
)
def test_a_programs_own_compaction_is_recognised_with_what_stayed_beside_it(
    name: str, first_kept: tuple[tuple[int, int], ...], pinned: tuple[tuple[int, tuple[int, ...]], ...]
) -> None:
    file = fixture(name)

    assert (file.compactions, file.first_kept, file.pinned) == (1, first_kept, pinned)


def test_gemini_clis_preface_before_a_snapshot_is_not_taken_for_what_it_kept() -> None:
    lines = (FIXTURES / "gemini-cli.jsonl").read_bytes().splitlines()
    [at] = [n for n, line in enumerate(lines) if b"<state_snapshot>" in line]
    changed = json.loads(lines[at])
    preface = {"id": "p1", "type": "user", "content": [{"text": "<session_context>Today</session_context>"}]}
    changed["$set"]["messages"].insert(0, preface)
    lines[at] = json.dumps(changed).encode()

    file = read(b"\n".join(lines))

    assert (file.compactions, file.first_kept[-1][1]) == (1, fixture("gemini-cli.jsonl").first_kept[-1][1])


@pytest.mark.parametrize(
    ("name", "at", "usage"),
    [
        (
            "codex.jsonl",
            3,
            Usage(input_tokens=800, cache_read_tokens=100, output_tokens=40, reasoning_tokens=10),
        ),
        (
            "gemini-cli.jsonl",
            1,
            Usage(input_tokens=600, cache_read_tokens=400, output_tokens=25, reasoning_tokens=5),
        ),
        ("cline-task.json", 1, Usage(input_tokens=100, cache_read_tokens=50, output_tokens=20)),
        (
            "opencode.json",
            1,
            Usage(input_tokens=10, output_tokens=5, cache_read_tokens=7, cache_write_tokens=3),
        ),
        ("mini-swe-agent-2.traj.json", 2, Usage(input_tokens=50, output_tokens=9)),
        ("openhands-v0.json", 1, Usage(input_tokens=100, output_tokens=7)),
        (
            "klaude.jsonl",
            3,
            Usage(
                input_tokens=40,
                cache_read_tokens=60,
                output_tokens=9,
                reasoning_tokens=2,
                context_window=200_000,
            ),
        ),
    ],
)
def test_a_models_usage_report_is_read(name: str, at: int, usage: Usage) -> None:
    message = fixture(name).messages[at][0]

    assert message.usage is not None
    assert normalise(message.usage)[0] == usage


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("codex.jsonl", (1, 1, 2, 3, 5, 6, 7, 8, 9, 10)),
        ("gemini-cli.jsonl", (1, 2, 3, 4, 5, 6, 6, 7, 7, 8)),
        ("cline-task.json", (0, 1, 2, 2)),
        ("opencode.json", (0, 1, 1.2, 1.4, 2, 3, 5, 6)),
        ("openhands.json", (1, 2, 3, 3, 4, 5, 6, 7)),
        ("klaude.jsonl", (0, 1, 1, 2, 3, 4, 5)),
    ],
)
def test_the_times_of_messages_are_read(name: str, times: tuple[float, ...]) -> None:
    start = 1_772_359_200.0

    seen = [message.created_at for message, _ in fixture(name).messages]

    assert seen == [pytest.approx(start + time) for time in times]


@pytest.mark.parametrize(
    ("name", "warnings"),
    [
        ("codex.jsonl", ("1 messages were taken back by a rollback",)),
        ("gemini-cli.jsonl", ("1 messages were taken back by a rewind",)),
        (
            "klaude.jsonl",
            (
                "1 messages were taken back by a rewind",
                "1 × sub-agent, whose session is in another file: left out",
            ),
        ),
        ("mini-swe-agent-2.traj.json", ("1 × exit record at the end of the run: left out",)),
        ("openhands.json", ("1 × event of the unknown kind 'SomethingNewEvent': left out",)),
        ("opal.jsonl", ("1 × branch of the conversation's tree: left out",)),
        ("aider.md", ()),
        ("opencode.json", ()),
    ],
)
def test_what_is_left_out_of_a_file_is_told(name: str, warnings: tuple[str, ...]) -> None:
    assert fixture(name).warnings == warnings


def test_what_the_model_notes_when_it_rewinds_is_read_and_is_not_the_users() -> None:
    rows = [json.loads(line) for line in (FIXTURES / "klaude.jsonl").read_text().splitlines()]
    for row in rows:
        if row["type"] == "RewindEntry":
            row["data"] |= {"rationale": "a dead end", "note": "You must never use the cache."}

    file = read("\n".join(json.dumps(row) for row in rows).encode())

    noted = [line for line in outline(file) if "dead end" in line]
    assert noted == ["user synthetic: Rewound. Rationale: a dead end\nSummary: You must never use the cache."]
    assert not any(is_typed(message) for message, _ in file.messages if "dead end" in str(message.content))


def test_what_codex_writes_about_itself_is_no_loss() -> None:
    data = (FIXTURES / "codex.jsonl").read_bytes()
    own = [{"type": kind, "payload": {}} for kind in ("world_state", "token_usage_record")]

    with_own = read(data + b"".join(json.dumps(record).encode() + b"\n" for record in own))

    assert with_own == read(data)
