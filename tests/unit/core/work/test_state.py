"""The state of the work as a whole: whose words become what, and the laws of reading."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.constraints.constraints import constraints_of
from compactd.core.history.entries import Item
from compactd.core.work.gists import MAX_GISTS
from compactd.core.work.state import (
    MAX_ATTEMPTS,
    MAX_DECISIONS,
    MAX_QUOTE_CHARS,
    MAX_REQUEST_CHARS,
    SHOWN_CALLS,
    WorkReader,
    WorkState,
)
from compactd.protocol.messages import Document, Message, Meta, Text, ToolCall, ToolResult
from compactd.protocol.work import (
    CurrentStep,
    FailedAttempt,
    StatedConstraint,
    Work,
    WorkDecision,
)
from tests.properties.steps import talk
from tests.support.agent_work import AgentWork, call_block, work_of
from tests.support.conversations import conversations, items_of
from tests.support.examples import examples

REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def attempts(agent: AgentWork) -> list[str]:
    return [attempt.text for attempt in agent.work.failed_attempts]


def decisions(agent: AgentWork) -> list[str]:
    return [decision.text for decision in agent.work.decisions]


# --- goal and request -----------------------------------------------------------------------------------


def test_the_goal_is_the_first_request_and_the_request_the_newest() -> None:
    agent = AgentWork()
    agent.asks("Fix the stale cache in the loader.\nIt is slow.")
    agent.says("I will look at it.")
    agent.asks("Now write a test for it.")

    assert (agent.work.goal, agent.work.request) == (
        "Fix the stale cache in the loader. It is slow.",
        "Now write a test for it.",
    )


def test_a_long_request_is_cut() -> None:
    agent = AgentWork()

    agent.asks("Look at this long story. " * 200)

    request = agent.work.request or ""
    assert len(request) <= MAX_REQUEST_CHARS
    assert request.endswith("…")


def test_nothing_was_read_is_an_empty_state() -> None:
    assert WorkReader().work() == Work()


def test_the_constraints_are_those_that_are_given() -> None:
    agent = AgentWork()
    agent.asks("Fix it. Never touch c.py.")
    reader = WorkReader()
    for item in agent.items:
        reader.add(item)

    work = reader.work(constraints_of(agent.items))

    assert work.constraints == (StatedConstraint(text="Never touch c.py.", entry_id="e1"),)


COMMAND = "<command-message>review</command-message>\n<command-name>/review</command-name>"
SKILL_TEXT = (
    "Base directory for this skill: /home/me/skills/review\n\n# Review\n\n1. Run the tests FIRST.\n2. Reply."
)


def state_of(agent: AgentWork) -> WorkState:
    reader = WorkReader()
    for item in agent.items:
        reader.add(item)
    return reader.state()


def test_a_slash_command_is_a_request_and_its_text_a_brief() -> None:
    agent = AgentWork()
    agent.asks("Fix the stale cache in the loader.")
    agent.asks(COMMAND)
    agent.asks(SKILL_TEXT, Meta(synthetic=True))
    agent.says("I run the tests.")

    state = state_of(agent)

    assert [turn.sentences for turn in state.turns[1:]] == [("(command /review)",)]
    assert state.skill is not None
    assert (state.skill.entry_id, "Run the tests FIRST." in state.skill.text) == ("e3", True)
    assert state.work.goal == "Fix the stale cache in the loader."


def test_the_text_of_a_command_goes_with_the_next_request() -> None:
    agent = AgentWork()
    agent.asks(COMMAND)
    agent.asks(SKILL_TEXT, Meta(synthetic=True))
    agent.asks("Now write the release notes.")

    assert state_of(agent).skill is None


def test_a_command_has_its_arguments() -> None:
    agent = AgentWork()
    agent.asks(f"{COMMAND}\n<command-args>this branch</command-args>")

    assert state_of(agent).turns[0].sentences == ("(command /review)", "this branch")


def test_arguments_in_a_programs_text_are_not_the_users() -> None:
    agent = AgentWork()
    agent.asks(f"{COMMAND}\n<command-args>push to origin</command-args>", Meta(synthetic=True))

    assert state_of(agent).turns[0].sentences == ("(command /review)",)


@pytest.mark.parametrize("name", ["/clear", "/model"])
def test_a_command_that_asks_nothing_of_the_model_is_no_request(name: str) -> None:
    agent = AgentWork()
    agent.asks(COMMAND.replace("/review", name))

    assert state_of(agent).turns == ()


def test_a_text_that_no_command_precedes_is_no_brief() -> None:
    agent = AgentWork()
    agent.asks("Fix the stale cache in the loader.")
    agent.asks(SKILL_TEXT, Meta(synthetic=True))

    assert state_of(agent).skill is None


# --- words of others ------------------------------------------------------------------------------------

FOREIGN = (
    "Never touch the file foreign.py. We decided to use a queue because it is faster than a lock. "
    "That approach did not work because of the lock. Let me now rewrite the foreign loader first.\n"
    "- [ ] rewrite the foreign loader\n- [x] read the foreign loader\n"
)
SKILL = f"Base directory for this skill: /skills/a\n\n{FOREIGN}"
LOG = (
    "2026-11-26 10:00:00 Never touch the file foreign.py.\n"
    "2026-11-26 10:00:01 We decided to use a queue because it is faster than a lock.\n"
    "2026-11-26 10:00:02 That approach did not work because of the lock."
)
QUOTED = "".join(f"> {line}\n" for line in FOREIGN.splitlines())
SOURCES = {
    "reminder": Message(role="user", content=(Text(text=f"<system-reminder>\n{FOREIGN}</system-reminder>"),)),
    "unknown tag": Message(role="user", content=(Text(text=f"<agent_memory>\n{FOREIGN}</agent_memory>"),)),
    "result in a user's message": Message(role="user", content=(ToolResult(call_id="t1", content=FOREIGN),)),
    "result": Message(role="tool", content=(ToolResult(call_id="t1", content=(Text(text=FOREIGN),)),)),
    "prompt of a sub-agent": Message(
        role="assistant",
        content=(
            call_block("z1", "Task", description="go", prompt=FOREIGN, subagent_type="general"),
            call_block("z2", "Agent", description="go", prompt=FOREIGN),
        ),
    ),
    "result of a sub-agent": Message(role="tool", content=(ToolResult(call_id="t2", content=FOREIGN),)),
    "sub-agent's words": Message(
        role="assistant", content=(Text(text=FOREIGN),), meta=Meta(author="subagent")
    ),
    "skill": Message(role="user", content=(Text(text=SKILL),)),
    "skill by meta": Message(role="user", content=(Text(text=FOREIGN),), meta=Meta(author="skill")),
    "synthetic": Message(role="user", content=(Text(text=FOREIGN),), meta=Meta(synthetic=True)),
    "synthetic answer": Message(role="assistant", content=(Text(text=FOREIGN),), meta=Meta(synthetic=True)),
    "earlier summary": Message(
        role="user", content=(Text(text=FOREIGN),), meta=Meta(type="compaction_summary")
    ),
    "summary of another program": Message(
        role="user",
        content=(Text(text=f"This session is being continued from a previous conversation.\n{FOREIGN}"),),
    ),
    "summary in the assistant's role": Message(
        role="assistant", content=(Text(text=FOREIGN),), meta=Meta(type="compaction_summary")
    ),
    "system": Message(role="system", content=(Text(text=FOREIGN),)),
    "file": Message(role="user", content=(Document(media_type="text/plain", text=FOREIGN),)),
    "log": Message(role="user", content=(Text(text=LOG),)),
    "quotation": Message(role="user", content=(Text(text=QUOTED),)),
    "code": Message(role="user", content=(Text(text=f"```\n{FOREIGN}```"),)),
    "shell command of the user": Message(
        role="user", content=(Text(text=f"$ cat a\n{FOREIGN}"),), meta=Meta(kind="bash_execution")
    ),
    "thoughts of a notification": Message(
        role="user", content=(Text(text=f"<task-notification>{FOREIGN}</task-notification>"),)
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_words_of_others_are_no_state_of_the_work(source: str) -> None:
    agent = AgentWork()
    agent.asks("Fix the loader.")
    agent.says("I look at the loader and its callers first.")
    agent.add("assistant", call_block("t1", "Read", file_path="a.py"), call_block("t2", "Task", prompt="go"))
    before = agent.work
    message = SOURCES[source]
    agent.add(message.role, *message.content, meta=message.meta)

    work = agent.work

    assert "foreign" not in repr(work).replace("'foreign.py'", "")
    assert msgspec.structs.replace(work, now=None) == msgspec.structs.replace(before, now=None)
    assert work.now is not None
    assert before.now is not None
    assert work.now.text.startswith(before.now.text)
    assert constraints_of(agent.items).in_force == ()


@pytest.mark.parametrize("source", SOURCES)
def test_words_of_others_are_no_first_request(source: str) -> None:
    work = work_of([Item(entry_id="e1", body=SOURCES[source], tokens=1)])

    assert (work.goal, work.request, work.plan, work.decisions, work.failed_attempts) == (
        None,
        None,
        (),
        (),
        (),
    )
    assert work.now is None


def test_typed_words_next_to_a_reminder_are_the_request() -> None:
    agent = AgentWork()

    agent.asks(f"Fix the loader.\n<system-reminder>\n{FOREIGN}</system-reminder>\n")

    assert (agent.work.goal, agent.work.request) == ("Fix the loader.", "Fix the loader.")


# --- what the agent does now ----------------------------------------------------------------------------


def test_now_is_what_the_agent_announced_last_with_the_calls_since() -> None:
    agent = AgentWork()
    agent.says("The loader is fine after all. Let me now fix the cache in src/cache.py.")
    said = agent.says("The cache has two callers in it. Let me now fix both of the callers.")
    agent.edits("src/cache.py")
    agent.runs("pytest -q", "1 failed", failed=True)

    assert agent.work.now == CurrentStep(
        text="Let me now fix both of the callers. Since then: Edit src/cache.py; `pytest -q` failed",
        entry_id=said,
    )


def test_of_many_calls_since_the_last_are_named_and_the_others_counted() -> None:
    agent = AgentWork()
    agent.says("Let me now fix all of the callers.")
    for number in range(SHOWN_CALLS + 2):
        agent.edits(f"a{number}.py")

    assert agent.work.now == CurrentStep(
        text="Let me now fix all of the callers. "
        "Since then: Edit a2.py; Edit a3.py; Edit a4.py (2 more calls before that)",
        entry_id="e1",
    )


def test_a_call_without_arguments_is_named_by_its_tool() -> None:
    agent = AgentWork()
    agent.says("Let me now look at the shell.")
    agent.does("bash", restart=True)
    agent.does("bash")

    assert agent.work.now == CurrentStep(
        text="Let me now look at the shell. Since then: `bash` succeeded; `bash` succeeded", entry_id="e1"
    )


# --- decisions ------------------------------------------------------------------------------------------


def test_a_sentence_that_decides_is_a_decision_without_its_opener() -> None:
    agent = AgentWork()

    said = agent.says("Great! We use a queue instead of a lock because it is simpler. The sky is blue today.")

    assert agent.work.decisions == (
        WorkDecision(text="We use a queue instead of a lock because it is simpler.", entry_id=said),
    )


def test_an_answer_of_the_user_is_a_decision_and_a_newer_one_says_what_it_was() -> None:
    agent = AgentWork()
    questions = [{"question": "Which store?", "options": [{"label": "SQLite"}, {"label": "Files"}]}]
    answer = 'User has answered your questions: "Which store?"="{}", "How many?"="3". You can now continue.'
    agent.does("AskUserQuestion", answer.format("SQLite"), questions=questions)
    newer = agent.does("AskUserQuestion", answer.format("Files"), questions=questions)

    assert agent.work.decisions == (
        WorkDecision(
            text="The user chose: Which store? → Files",
            was="The user chose: Which store? → SQLite",
            entry_id=newer,
        ),
        WorkDecision(text="The user chose: How many? → 3", entry_id=newer),
    )


def test_an_answer_in_the_result_of_another_tool_is_no_decision() -> None:
    agent = AgentWork()
    agent.runs("cat log", '"Which store?"="SQLite"')
    agent.does("Task", '"Which store?"="SQLite"', prompt="ask")

    assert agent.work.decisions == ()


def test_a_plan_that_the_user_approved_is_a_decision() -> None:
    agent = AgentWork()
    agent.does("ExitPlanMode", "no", failed=True, plan="# Use a lock")
    approved = agent.does("ExitPlanMode", "User has approved your plan.", plan="# Use a queue\n\n1. Read")

    assert agent.work.decisions == (
        WorkDecision(text="The user approved the plan: Use a queue", entry_id=approved),
    )


def test_only_the_newest_decisions_are_kept() -> None:
    agent = AgentWork()
    for number in range(MAX_DECISIONS + 5):
        agent.says(f"We use queue number {number} instead of a lock because it is simpler.")

    assert [one.entry_id for one in agent.work.decisions] == [f"e{n}" for n in range(6, MAX_DECISIONS + 6)]


# --- what did not work ----------------------------------------------------------------------------------


def test_a_resolved_failure_names_the_error_the_explanation_and_the_message_that_resolved_it() -> None:
    agent = AgentWork()
    failed = agent.runs("pytest -q", "tests/test_a.py:12: KeyError: 'etag'\n1 failed", failed=True)
    agent.says("The fixture has no etag in its header. Let me add one to the fixture.")
    agent.edits("tests/conftest.py")
    passed = agent.runs("pytest -q", "3 passed in 0.10s")

    (attempt,) = agent.work.failed_attempts
    assert attempt.entry_id == failed
    assert attempt.text.startswith("`pytest -q` failed: tests/test_a.py:12: KeyError: 'etag'")
    assert attempt.text.endswith(f" The fixture has no etag in its header. It succeeded later ({passed}).")


def test_a_failed_command_that_nobody_explained_is_no_attempt_when_it_succeeds() -> None:
    agent = AgentWork()
    agent.runs("./deploy", "Exit code 1\nno host", failed=True)
    agent.runs("./deploy", "deployed")

    assert (attempts(agent), agent.work.open_errors) == ([], ())


def test_each_check_that_a_success_resolves_is_an_attempt() -> None:
    agent = AgentWork()
    first = agent.runs("pytest tests/test_a.py", "a.py:1: KeyError\n1 failed", failed=True)
    second = agent.runs("pytest tests/test_b.py", "b.py:1: KeyError\n1 failed", failed=True)
    agent.runs("pytest", "3 passed in 0.10s")

    assert [attempt.entry_id for attempt in agent.work.failed_attempts] == [first, second]


def test_what_the_agent_and_the_user_say_did_not_work_is_an_attempt() -> None:
    agent = AgentWork()
    said = agent.says("The lock did not work across two processes. Why does it fail with a lock?")
    told = agent.asks("That does not work on my machine. Try it again.")

    assert agent.work.failed_attempts == (
        FailedAttempt(text="The lock did not work across two processes.", entry_id=said),
        FailedAttempt(text="The user said: “That does not work on my machine.”", entry_id=told),
    )


def test_a_rejection_has_the_reply_of_the_user() -> None:
    agent = AgentWork()
    agent.runs("git push", REJECTED, failed=True)
    reply = agent.asks("Do not push, only commit.")
    agent.says("I only commit the changes then.")

    assert agent.work.failed_attempts == (
        FailedAttempt(
            text="The user did not allow: git push. The user then said: “Do not push, only commit.”",
            entry_id=reply,
        ),
    )


def test_a_rejection_has_the_reply_in_the_same_message() -> None:
    agent = AgentWork()
    agent.add("assistant", call_block("a", "Bash", command="git push"))
    reply = agent.add(
        "user",
        ToolResult(call_id="a", content=REJECTED, is_error=True),
        Text(text="Do not push, only commit."),
    )

    assert agent.work.failed_attempts == (
        FailedAttempt(
            text="The user did not allow: git push. The user then said: “Do not push, only commit.”",
            entry_id=reply,
        ),
    )


def test_a_rejection_without_a_reply_is_an_attempt_and_a_long_reply_is_cut() -> None:
    agent = AgentWork()
    agent.edits("a.py")
    agent.does("Write", REJECTED, failed=True, file_path="b.py", content="x")
    agent.says("I leave this file as it is then.")
    agent.runs("git push", REJECTED, failed=True)
    agent.asks("Do not push to this branch. " * 100)

    first, second = attempts(agent)
    assert first == "The user did not allow: Write b.py."
    assert second.endswith("…”")
    assert len(second) < MAX_QUOTE_CHARS + 100


def test_only_the_newest_attempts_are_kept() -> None:
    agent = AgentWork()
    for number in range(MAX_ATTEMPTS + 5):
        agent.says(f"Way number {number} did not work across two processes.")

    assert [one.entry_id for one in agent.work.failed_attempts] == [
        f"e{n}" for n in range(6, MAX_ATTEMPTS + 6)
    ]


# --- laws -----------------------------------------------------------------------------------------------

PATHS = st.sampled_from(("a.py", "src/b.py", "/repo/src/b.py", ".", "", "-", "größe.md", "\n"))
WORDS = st.sampled_from(
    (
        "",
        "a",
        "git add . && git commit -am 'x'",
        "git -C",
        "git",
        "git checkout -- a.py",
        "pytest",
        "python -m",
        "rm a.py; mv a.py b.py; mv a.py",
        "bash -c 'bash -c \"x",
        "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n*** Move to:\n*** Add File: c.py",
        "*** Begin Patch\n*** Move to: b.py",
        "- [x] a\n- [ ] b",
        "- [ ] a\n- [ ] b\n- [ ] c",
        "if expired(entry):\n    return None",
        "*** Begin Patch\n*** Add File: t.md\n+- [ ] a\n+- [ ] b\n@@\n*** End Patch",
        FOREIGN,
        "Task #3",
        '"Which?"="this"',
        "Exit code 1",
        "1 failed, 2 passed",
        REJECTED,
        "[main 1a2b3c4] x",
        "deleted",
        "completed",
        "view",
    )
)
NAMES = st.sampled_from(
    (
        "Bash", "Edit", "Write", "apply_patch", "TodoWrite", "TaskCreate", "TaskUpdate", "AskUserQuestion",
        "ExitPlanMode", "Task", "Read", "other", "", "str_replace_editor", "mcp__a__edit",
    )
)  # fmt: skip
KEYS = st.sampled_from(
    (
        "command", "cmd", "script", "path", "file_path", "files", "content", "old_string", "new_string",
        "input", "patch", "edits", "new_str", "todos", "plan", "task_list", "items", "taskId", "id", "status",
        "subject", "title", "text",
    )
)  # fmt: skip
NUMBERS = st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | PATHS | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
IDS = st.sampled_from(("a", "b"))
BLOCKS = st.one_of(
    st.builds(Text, text=WORDS),
    st.builds(
        ToolCall,
        call_id=IDS,
        name=NAMES,
        arguments=st.one_of(st.dictionaries(KEYS, JSON, max_size=5), JSON).map(
            lambda value: Raw(msgspec.json.encode(value))
        ),
    ),
    st.builds(ToolResult, call_id=IDS, content=WORDS, is_error=st.booleans()),
)
METAS = st.none() | st.builds(
    Meta,
    type=st.sampled_from((None, "compaction_summary")),
    author=st.sampled_from((None, "user", "subagent", "nobody")),
    synthetic=st.booleans(),
)
WORKING = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(("user", "assistant", "assistant", "tool", "system")),
        content=st.lists(BLOCKS, max_size=3).map(tuple),
        meta=METAS,
    ),
    max_size=12,
)
"""Conversations of calls with every name, argument and result, fitting or not."""
ANY = st.one_of(WORKING, WORKING, conversations(), talk())


@given(ANY)
@example([Message(role="assistant", content=(call_block("a", "Edit", command=["view"], path="a.py"),))])
@settings(max_examples=examples(200))
def test_any_messages_are_read_without_an_error_and_always_give_the_same(messages: list[Message]) -> None:
    items = items_of(messages)

    first, again = work_of(items), work_of(items)

    assert first == again
    assert msgspec.json.decode(msgspec.json.encode(first), type=Work) == first


TEXTS = st.lists(
    st.sampled_from(
        (
            "if entry.age > limit:", "drop(entry.name)", "use(entry)", "return None", "import os", "# note",
            "}", "", "- [ ] A", "- [x] A", "- [ ] B", "- [~] B", "def load(path):", "def load(path, size):",
            "@@", "*** Add File: b.py",
        )
    ),
    max_size=5,
).map("\n".join)  # fmt: skip
CHANGED = st.sampled_from(("a.py", "b.py", "plan.md", "todo.md"))
DONE = st.one_of(
    st.tuples(
        st.just("Edit"), st.fixed_dictionaries({"path": CHANGED, "old_string": TEXTS, "new_string": TEXTS})
    ),
    st.tuples(st.just("Write"), st.fixed_dictionaries({"path": CHANGED, "content": TEXTS})),
    st.tuples(
        st.just("apply_patch"),
        st.builds(
            lambda path, text: {"input": f"*** Begin Patch\n*** Update File: {path}\n{text}"}, CHANGED, TEXTS
        ),
    ),
    st.tuples(
        st.just("Bash"),
        st.sampled_from(("git commit -am x", "mv a.py b.py", "git checkout -- a.py", "rm plan.md")).map(
            lambda command: {"command": command}
        ),
    ),
)


@given(st.lists(st.tuples(DONE, st.booleans()), max_size=12))
@settings(max_examples=examples(200))
def test_edits_of_any_lines_are_read_in_any_steps(
    done: list[tuple[tuple[str, dict[str, object]], bool]],
) -> None:
    agent = AgentWork()
    for (name, arguments), has_result in done:
        agent.calls(name, **arguments)
        if has_result:
            agent.gets("[main 1a2b3c4] x")
    reader = WorkReader()
    for item in agent.items:
        reader.add(item)
        reader.state()
    at_once = WorkReader()
    for item in agent.items:
        at_once.add(item)

    state = reader.state()

    assert state == at_once.state()
    assert {one.entry_id for one in state.attempts} <= {item.entry_id for item in agent.items}
    assert {path for path, lines in state.gists.items() if not 0 < len(lines) <= MAX_GISTS} == set()
    assert {file.path for file in state.work.changes if file.committed}.isdisjoint(state.pending)
    assert len(state.work.plan) <= state.planned[1]


@given(ANY, st.integers(0, 12))
@settings(max_examples=examples(100))
def test_asking_in_between_changes_nothing(messages: list[Message], prefix: int) -> None:
    items = items_of(messages)
    reader = WorkReader()
    for number, item in enumerate(items):
        reader.add(item)
        if number < prefix:
            assert reader.work() == work_of(items[: number + 1])

    assert reader.work() == work_of(items)


@given(ANY)
@settings(max_examples=examples(100))
def test_each_item_names_a_message_that_was_read(messages: list[Message]) -> None:
    items = items_of(messages)

    work = work_of(items)

    named = {one.entry_id for one in (*work.plan, *work.checks, *work.decisions)}
    named |= {one.entry_id for one in (*work.failed_attempts, *work.open_errors)}
    named |= {file.last_entry_id for file in work.changes}
    assert named <= {item.entry_id for item in items}
    assert len(work.decisions) <= MAX_DECISIONS
    assert len(work.failed_attempts) <= MAX_ATTEMPTS


@pytest.mark.parametrize(
    "said", ["Do it right instead: map the place.", "No, use the old one.", "Wait, that is too slow."]
)
def test_a_decision_that_the_user_corrects_says_so(said: str) -> None:
    agent = AgentWork()
    agent.asks("Fix the search.")
    agent.says("Decision: use str.lower() instead of casefold(), because it keeps the length.")
    agent.asks(said)

    (decision,) = agent.work.decisions

    assert decision.text.endswith(f"But then the user said: “{said}”")


def test_a_request_that_goes_on_corrects_nothing() -> None:
    agent = AgentWork()
    agent.asks("Fix the search.")
    agent.says("Decision: use str.lower() instead of casefold(), because it keeps the length.")
    agent.asks("Good. Now write the test.")

    (decision,) = agent.work.decisions

    assert "the user" not in decision.text


def test_an_edit_of_a_file_that_was_not_read_is_no_failed_attempt() -> None:
    agent = AgentWork()
    agent.asks("Fix it.")
    agent.does("Edit", "File has not been read yet. Read it first.", failed=True, file_path="a.py")
    agent.does("Edit", "The old text was not found in a.py", failed=True, file_path="a.py", old_string="x")

    assert [one.text for one in agent.work.open_errors] == ["The old text was not found in a.py"]
    assert agent.work.failed_attempts == ()


def test_a_failed_edit_is_told_with_its_cause_once_the_file_is_edited() -> None:
    agent = AgentWork()
    for said in ("Going on to it.", "The file was changed by the formatter since it was read."):
        agent.edits("a.py", failed=True)
        agent.says(said)
        agent.edits("a.py")

    assert agent.work.open_errors == ()
    assert [one.text for one in agent.work.failed_attempts] == [
        "Edit a.py failed: ok. The file was changed by the formatter since it was read."
        " It succeeded later (e10)."
    ]
