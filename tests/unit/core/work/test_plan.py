"""The agent's plan: whose lists count, the newest status of each task, and the message that changed it."""

from __future__ import annotations

import pytest

from compactd.core.work.checklists import MAX_FILES, MAX_TASK_CHARS, MAX_TASKS
from compactd.core.work.state import WorkReader
from compactd.protocol.messages import Meta
from compactd.protocol.work import PlanTask, TaskStatus
from tests.support.agent_work import AgentWork

LISTS: list[tuple[str, dict[str, object], list[tuple[str, TaskStatus]]]] = [
    (
        "TodoWrite",
        {
            "todos": [
                {"content": "Read the loader", "status": "completed", "activeForm": "Reading the loader"},
                {"content": "Fix the cache", "status": "in_progress", "activeForm": "Fixing the cache"},
                {"content": "Run the tests", "status": "pending", "activeForm": "Running the tests"},
            ]
        },
        [("Read the loader", "done"), ("Fix the cache", "in_progress"), ("Run the tests", "open")],
    ),
    (
        "update_plan",
        {
            "explanation": "Start",
            "plan": [{"step": "Read it", "status": "completed"}, {"step": "Fix it", "status": "pending"}],
        },
        [("Read it", "done"), ("Fix it", "open")],
    ),
    (
        "task_tracker",
        {
            "command": "plan",
            "task_list": [
                {"id": "1", "title": "Read it", "notes": "the loader", "status": "done"},
                {"id": "2", "title": "Fix it", "notes": "", "status": "todo"},
            ],
        },
        [("Read it", "done"), ("Fix it", "open")],
    ),
    (
        "write_todos",
        {"todos": [{"description": "Read it", "status": "cancelled"}]},
        [("Read it", "dropped")],
    ),
    (
        "update_todo_list",
        {"todos": "[x] not a list item\n- [x] Read it\n- [-] Fix it\n- [ ] Test it"},
        [("Read it", "done"), ("Fix it", "open"), ("Test it", "open")],
    ),
    (
        "mcp__board__set",
        {"items": [{"title": "Of no table", "status": "doing"}]},
        [("Of no table", "in_progress")],
    ),
    ("TodoWrite", {"todos": [{"content": "Odd", "status": "blocked"}]}, [("Odd", "open")]),
    ("TodoWrite", {"todos": [{"content": " two\n lines ", "status": 7}]}, [("two lines", "open")]),
]


@pytest.mark.parametrize(("name", "arguments", "tasks"), LISTS)
def test_a_call_that_states_the_plan_gives_each_task_its_status(
    name: str, arguments: dict[str, object], tasks: list[tuple[str, TaskStatus]]
) -> None:
    agent = AgentWork()

    entry_id = agent.calls(name, **arguments)

    assert agent.work.plan == tuple(
        PlanTask(text=text, status=status, entry_id=entry_id) for text, status in tasks
    )


@pytest.mark.parametrize(
    "todos",
    [None, 3, "no list", [None, 1, "text"], [{"status": "pending"}], [{"content": "  "}], {"content": "x"}],
)
def test_a_list_without_tasks_leaves_the_plan_as_it_was(todos: object) -> None:
    agent = AgentWork()
    agent.calls("TodoWrite", todos=[{"content": "Read it", "status": "pending"}])
    before = agent.work.plan

    agent.calls("TodoWrite", todos=todos)

    assert agent.work.plan == before


def test_a_task_keeps_the_message_that_last_changed_it() -> None:
    agent = AgentWork()
    first = agent.calls("TodoWrite", todos=[_todo("A", "completed"), _todo("B", "in_progress")])
    second = agent.calls(
        "TodoWrite", todos=[_todo("A", "completed"), _todo("B", "completed"), _todo("C", "pending")]
    )

    assert agent.work.plan == (
        PlanTask(text="A", status="done", entry_id=first),
        PlanTask(text="B", status="done", entry_id=second),
        PlanTask(text="C", status="open", entry_id=second),
    )


def test_a_task_that_the_newest_list_leaves_out_is_gone() -> None:
    agent = AgentWork()
    agent.calls("TodoWrite", todos=[_todo("A", "pending"), _todo("B", "pending")])
    agent.calls("TodoWrite", todos=[_todo("B", "pending")])

    assert [task.text for task in agent.work.plan] == ["B"]


def test_a_long_task_is_shortened() -> None:
    agent = AgentWork()

    agent.calls("TodoWrite", todos=[_todo("word " * 200, "pending")])

    (task,) = agent.work.plan
    assert len(task.text) <= MAX_TASK_CHARS
    assert task.text.endswith("word…")


def test_created_tasks_get_the_id_that_their_result_says() -> None:
    agent = AgentWork()
    agent.does("TaskCreate", "Task #7 created successfully: A", subject="A", description="long")
    second = agent.does("TaskCreate", "Task #9 created successfully: B", subject="B", description="long")
    done = agent.does("TaskUpdate", taskId="7", status="completed")

    assert agent.work.plan == (
        PlanTask(text="A", status="done", entry_id=done),
        PlanTask(text="B", status="open", entry_id=second),
    )


@pytest.mark.parametrize("result", ["ok", "Task created successfully", "The task was created.", ""])
def test_created_tasks_are_numbered_if_their_result_says_no_id(result: str) -> None:
    agent = AgentWork()
    agent.does("TaskCreate", result, subject="A")
    agent.does("TaskCreate", result, subject="B")
    agent.does("TaskUpdate", taskId="2", status="in_progress")

    assert [(task.text, task.status) for task in agent.work.plan] == [("A", "open"), ("B", "in_progress")]


def test_a_numbered_task_does_not_replace_another_after_a_deletion() -> None:
    agent = AgentWork()
    for subject in "AB":
        agent.does("TaskCreate", subject=subject)
    agent.does("TaskUpdate", taskId="1", status="deleted")
    agent.does("TaskCreate", subject="C")

    assert [task.text for task in agent.work.plan] == ["B", "C"]


def test_an_update_can_delete_rename_and_leave_a_task() -> None:
    agent = AgentWork()
    first = agent.does("TaskCreate", "Task #1 created", subject="A")
    agent.does("TaskCreate", "Task #2 created", subject="B")
    agent.does("TaskCreate", "Task #3 created", subject="C")
    agent.does("TaskUpdate", taskId="2", status="deleted")
    renamed = agent.does("TaskUpdate", taskId="3", subject="C, too")
    agent.does("TaskUpdate", taskId="1", addBlockedBy=["3"])
    agent.does("TaskUpdate", taskId="99", status="completed")

    assert agent.work.plan == (
        PlanTask(text="A", status="open", entry_id=first),
        PlanTask(text="C, too", status="open", entry_id=renamed),
    )


def test_a_task_call_that_failed_changes_nothing() -> None:
    agent = AgentWork()
    agent.does("TaskCreate", "Task #1 created", subject="A")
    before = agent.work.plan

    agent.does("TaskCreate", "invalid arguments", failed=True, subject="B")
    agent.does("TaskUpdate", "invalid arguments", failed=True, taskId="1", status="completed")

    assert agent.work.plan == before


CHECKLIST = "The plan:\n- [x] Read the loader\n2. [~] Fix the cache\n  * [ ] Run the tests\n"


def test_a_checklist_in_the_agents_words_is_the_plan() -> None:
    agent = AgentWork()

    entry_id = agent.says(CHECKLIST)

    assert agent.work.plan == (
        PlanTask(text="Read the loader", status="done", entry_id=entry_id),
        PlanTask(text="Fix the cache", status="in_progress", entry_id=entry_id),
        PlanTask(text="Run the tests", status="open", entry_id=entry_id),
    )


def test_one_line_is_no_checklist() -> None:
    agent = AgentWork()

    agent.says("- [ ] Run the tests\n- [link](a.md)\n- arr[0] is empty\n")

    assert agent.work.plan == ()


def test_a_checklist_of_anybody_else_is_no_plan() -> None:
    agent = AgentWork()
    agent.asks(CHECKLIST)
    agent.does("Read", CHECKLIST, file_path="TODO.md")
    agent.runs("cat TODO.md", CHECKLIST)
    agent.does("Task", CHECKLIST, prompt=CHECKLIST, description="go on")
    agent.does("Write", "no", failed=True, file_path="TODO.md", content=CHECKLIST)
    agent.does("Write", file_path="todo.py", content=CHECKLIST)
    agent.asks(f"<system-reminder>\n{CHECKLIST}</system-reminder>")
    agent.asks(CHECKLIST, Meta(synthetic=True))
    agent.asks(CHECKLIST, Meta(type="compaction_summary"))
    agent.says(CHECKLIST, Meta(author="subagent"))
    agent.says(CHECKLIST, Meta(author="summary"))
    agent.says(CHECKLIST, Meta(synthetic=True))
    agent.add("system", *agent.items[0].message.content)

    assert agent.work.plan == ()


def rows(agent: AgentWork) -> list[tuple[str, TaskStatus]]:
    return [(task.text, task.status) for task in agent.work.plan]


def edits(agent: AgentWork, old: str, new: str, path: str = "docs/plan.md") -> str:
    return agent.does("Edit", file_path=path, old_string=old, new_string=new)


def test_a_checklist_in_a_markdown_file_that_the_agent_writes_is_the_plan() -> None:
    agent = AgentWork()

    entry_id = agent.does("Write", file_path="TODO.md", content=f"# Plan\n\n{CHECKLIST}\nEnd.")

    assert agent.work.plan == (
        PlanTask(text="Read the loader", status="done", entry_id=entry_id),
        PlanTask(text="Fix the cache", status="in_progress", entry_id=entry_id),
        PlanTask(text="Run the tests", status="open", entry_id=entry_id),
    )


def test_an_edit_of_the_file_ticks_a_box() -> None:
    agent = AgentWork()
    first = agent.does("Write", file_path="docs/plan.md", content="- [ ] A\n- [ ] B\n- [ ] C\n")
    second = edits(agent, "- [ ] B", "- [x] B")

    assert agent.work.plan == (
        PlanTask(text="A", status="open", entry_id=first),
        PlanTask(text="B", status="done", entry_id=second),
        PlanTask(text="C", status="open", entry_id=first),
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("- [ ] B", "- [ ] B\n- [ ] B2", "A B B2 C B", id="added after a task"),
        pytest.param("# End", "- [ ] D", "A B C B D", id="added somewhere"),
        pytest.param("- [ ] A\n- [ ] B\n", "- [ ] B\n", "B C B", id="removed"),
        pytest.param("- [ ] C", "- [x] C, later", "A B C,_later B", id="renamed"),
        pytest.param("- [ ] C\n\n- [ ] B", "- [ ] C\n\n- [x] B", "A B C Bx", id="the second of the same"),
        pytest.param("some words", "other words", "A B C B", id="no box"),
        pytest.param("- [ ] other\n- [ ] B", "- [ ] B", "A B C B", id="not seen before"),
    ],
)
def test_an_edit_changes_the_tasks_in_their_place(old: str, new: str, expected: str) -> None:
    agent = AgentWork()
    agent.does(
        "Write", file_path="docs/plan.md", content="- [ ] A\n- [ ] B\n\n# B\n- [ ] C\n- [ ] B\n# End\n"
    )
    edits(agent, old, new)

    found = [
        text.replace(" ", "_") + ("x" if text == "B" and how == "done" else "") for text, how in rows(agent)
    ]
    assert " ".join(found) == expected


def test_the_boxes_of_a_file_that_was_only_edited_are_the_plan() -> None:
    agent = AgentWork()
    edits(agent, "- [ ] A\n- [ ] B", "- [x] A\n- [ ] B")
    edits(agent, "- [ ] B", "- [x] B")
    edits(agent, "- [ ] C\n- [ ] D", "- [x] C\n- [ ] D2")

    assert rows(agent) == [("A", "done"), ("B", "done"), ("C", "done"), ("D2", "open")]


def test_a_task_that_an_edit_leaves_out_is_gone_even_if_the_rest_is_not_known() -> None:
    agent = AgentWork()
    agent.does("Write", file_path="docs/plan.md", content="- [ ] A\n- [ ] B\n- [ ] C")
    edits(agent, "- [ ] Z\n- [ ] A", "- [ ] Z")

    assert rows(agent) == [("B", "open"), ("C", "open"), ("Z", "open")]


def test_of_two_tasks_with_the_same_words_the_one_with_the_old_mark_is_changed() -> None:
    agent = AgentWork()
    agent.does("Write", file_path="docs/plan.md", content="- [x] A\n- [ ] B\n- [ ] A\n- [ ] C")
    edits(agent, "- [ ] A", "- [~] A")

    assert [status for _, status in rows(agent)] == ["done", "open", "in_progress", "open"]


def test_boxes_around_a_change_are_no_plan() -> None:
    agent = AgentWork()
    edits(agent, "- [ ] A\n- [ ] B\nold", "- [ ] A\n- [ ] B\nnew")

    assert agent.work.plan == ()


def test_a_file_that_is_written_again_without_a_change_is_no_newer_list() -> None:
    agent = AgentWork()
    agent.does("Write", file_path="TODO.md", content="- [ ] A\n- [ ] B")
    agent.says("- [x] W\n- [ ] V")
    agent.does("Write", file_path="TODO.md", content="# Plan\n- [ ] A\n- [ ] B")

    assert rows(agent) == [("W", "done"), ("V", "open")]


def test_a_few_files_are_remembered() -> None:
    agent = AgentWork()
    for number in range(MAX_FILES + 1):
        agent.does("Write", file_path=f"{number}.md", content="- [ ] A\n- [ ] B")
    for number in range(1, MAX_FILES + 1):
        agent.does("Write", file_path=f"{number}.md", content="Nothing is left.")

    assert agent.work.plan == ()


def test_a_single_box_in_a_file_is_no_plan() -> None:
    agent = AgentWork()
    agent.does("Write", file_path="TODO.md", content="- [ ] A\n")

    assert agent.work.plan == ()


def test_a_patch_of_a_checklist_is_read() -> None:
    agent = AgentWork()
    agent.does(
        "apply_patch", input="*** Begin Patch\n*** Add File: plan.md\n+- [ ] A\n+- [ ] B\n*** End Patch"
    )
    agent.does(
        "apply_patch",
        input="*** Begin Patch\n*** Update File: plan.md\n@@\n-- [ ] A\n+- [x] A\n - [ ] B\n*** End Patch",
    )

    assert rows(agent) == [("A", "done"), ("B", "open")]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_tool_for_plans_counts_more_than_a_file(is_first: bool) -> None:
    agent = AgentWork()
    if is_first:
        agent.calls("TodoWrite", todos=[_todo("T", "pending")])
    agent.does("Write", file_path="TODO.md", content=CHECKLIST)
    if not is_first:
        agent.calls("TodoWrite", todos=[_todo("T", "pending")])

    assert rows(agent) == [("T", "open")]


def test_of_the_agents_words_and_a_file_the_newer_list_counts() -> None:
    agent = AgentWork()
    agent.says("- [ ] W\n- [ ] V")
    agent.does("Write", file_path="TODO.md", content="- [ ] A\n- [ ] B")
    in_file = rows(agent)
    agent.says("- [x] W\n- [ ] V")
    in_words = rows(agent)
    edits(agent, "- [ ] A", "- [x] A", "TODO.md")

    assert in_file == [("A", "open"), ("B", "open")]
    assert in_words == [("W", "done"), ("V", "open")]
    assert rows(agent) == [("A", "done"), ("B", "open")]


def test_of_two_files_the_one_that_was_changed_last_counts() -> None:
    agent = AgentWork()
    agent.does("Write", file_path="one.md", content="- [ ] A\n- [ ] B")
    agent.does("Write", file_path="two.md", content="- [ ] C\n- [ ] D")
    second = rows(agent)
    edits(agent, "- [ ] B", "- [x] B", "one.md")

    assert second == [("C", "open"), ("D", "open")]
    assert rows(agent) == [("A", "open"), ("B", "done")]


def test_a_file_without_its_list_leaves_the_list_of_another() -> None:
    agent = AgentWork()
    agent.does("Write", file_path="one.md", content="- [ ] A\n- [ ] B")
    agent.does("Write", file_path="two.md", content="- [ ] C\n- [ ] D")
    agent.does("Write", file_path="two.md", content="Nothing is left.")

    assert rows(agent) == [("A", "open"), ("B", "open")]


def test_a_long_list_keeps_the_tasks_that_are_not_done_and_counts_all() -> None:
    boxes = [f"- [{'x' if n < 130 else ' '}] task {n}" for n in range(140)]
    agent = AgentWork()
    agent.does("Write", file_path="TODO.md", content="Why it is done. " * 5_000 + "\n" + "\n".join(boxes))
    reader = WorkReader()
    for item in agent.items:
        reader.add(item)

    assert len(agent.work.plan) == MAX_TASKS
    assert rows(agent)[:3] == [("task 128", "done"), ("task 129", "done"), ("task 130", "open")]
    assert rows(agent)[-1] == ("task 139", "open")
    assert reader.state().planned == (130, 140)


def _todo(content: str, status: str) -> dict[str, object]:
    return {"content": content, "status": status, "activeForm": content}


def test_a_list_of_the_tasks_shows_what_a_sub_agent_finished() -> None:
    agent = AgentWork()
    agent.does("TaskCreate", "Task #1 created", subject="Read the loader")
    agent.does("TaskCreate", "Task #2 created", subject="Fix the cache")
    agent.does("TaskCreate", "Task #3 created", subject="Run the tests")

    agent.does(
        "TaskList",
        "#3 [odd] Run the tests\n#1 [completed] Read the loader\n#2 [completed] Another\n#9 [pending] New",
    )

    assert rows(agent) == [("Read the loader", "done"), ("Fix the cache", "open"), ("Run the tests", "open")]


def test_only_a_tool_that_lists_tasks_changes_their_status() -> None:
    agent = AgentWork()
    agent.does("TaskCreate", "Task #1 created", subject="Read the loader")

    agent.does("Read", "#1 [completed] Read the loader", file_path="tasks.txt")
    agent.runs("cat tasks.txt", "#1 [completed] Read the loader")
    agent.does("TaskList", "#1 [completed] Read the loader", failed=True)

    assert rows(agent) == [("Read the loader", "open")]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("SKIPPED (optional cleanup for later)", "dropped"),
        ("**DROPPED:** the old loader", "dropped"),
        ("DONE", "done"),
        ("Skipped tests run again", "open"),
        ("DONE button in the header", "open"),
    ],
)
def test_a_box_that_says_in_capitals_that_it_is_settled_is_no_open_task(text: str, status: str) -> None:
    agent = AgentWork()

    agent.says(f"- [ ] {text}\n- [ ] Run the tests\n")

    assert rows(agent)[0] == (text, status)
