"""The user's constraints: which sentences count, who may say them, which of two contradicting ones wins."""

from __future__ import annotations

import pytest

from compactd.core.constraints.constraints import (
    NO_PATH_CONSTRAINTS,
    Constraint,
    MessageLimits,
    bullet,
    constraints_of,
    fitting_constraints,
    is_constraint,
    without_them,
)
from compactd.core.history.entries import Item
from compactd.protocol.messages import Message, Meta, Role, Text, ToolResult

SET_LIMITS = """\
Stop amending commits.
Let's not amend commits.
let us not touch the cache
Never edit the file src/api.py.
Always run the tests before you commit.
You must not change the public API.
Don't add new dependencies.
Don’t touch main.
do not rename anything
Prefer composition over inheritance.
I prefer tabs.
Only use the standard library.
Use only what is there.
Keep the response time below 200 ms.
No new dependency.
Use at most 3 retries.
Please avoid global state.
Make sure that the tests pass.
We should not log secrets.
It is forbidden to use eval.
If a request could harm somebody, stop and ask first.
Note: if the build breaks, wait for the release manager.
Write the examples in Python, not JavaScript.
Global state is not allowed.
Stick to Python 3.11.
Lines may have at most 100 characters.
max 80 characters per line
Responses must be < 200ms
The budget is 5000 tokens.
No emojis.
From now on, answer in German.
Whatever you do, leave the schema alone.
Use httpx instead of requests.
Under no circumstances push to main.
Do it without changing the schema.
I don't want you to use mocks.
Can you please never push to main?
Niemals die Datei config.yaml ändern.
Bitte keine neuen Abhängigkeiten.
Verwende nur die Standardbibliothek.
Die Antwort darf höchstens 200 ms dauern.
Ne modifie jamais le fichier config.yaml.
N'utilise pas de variables globales.
Pas de nouvelle dépendance.
Nunca modifiques el archivo config.yaml.
No uses variables globales.
Usa solo la biblioteca estándar.
不要修改公共接口。
必须先运行测试。
最多重试三次
公開APIを変更しないでください。
必ずテストを実行してください。
外部ライブラリは使用禁止。
Nothing outside src/ may change.
You cannot use the network.
None of the tests may be skipped.
No one may import from core directly.
All functions need to have type hints.
Ask me before you run migrations.
Letters under three hundred words, please.
Book a trip for up to one thousand euros.
Answer in less than ten seconds.
She wants short answers.
The customer would like detailed explanations.
I would rather have brief, plain commit messages.
I'd rather have brief, plain commit messages.
He’d like shorter replies.
Stop using print statements.
Change everything except auth.py.
The public API is frozen.
We can't break backwards compatibility.
I won't accept changes to auth.py.
Fix the loader, leave migrations/ alone — then stop.
"No new dependencies" is a hard rule here.
Could you please not touch auth.py?
Do it w/o new deps.
**Do not** touch auth.py.
<b>Never</b> touch auth.py.
Fass die Datei auth.py nicht an.
Bitte auth.py nicht anfassen.
Touche pas à auth.py.
Por favor, no modifiques auth.py.
Non toccare auth.py.
Não altere auth.py.
Raak auth.py niet aan.
Rör inte auth.py.
Nie dotykaj auth.py.
Не трогай auth.py.
auth.py dosyasına dokunma.
请勿修改 auth.py
auth.pyを触るな。
auth.py를 건드리지 마세요
auth.py को मत छुओ
Đừng sửa auth.py.
Jangan ubah auth.py.
ห้ามแก้ไข auth.py
אל תיגע ב-auth.py""".splitlines()

SET_NONE = """\
Let's not worry about it.
Let's not forget the demo.
Fix the parser please.
Why must it be a string?
I don't know why it fails.
The error says "value must be positive".
never mind
Never!
It only fails on CI.
What is the limit?
How do I run only the tests?
no, that is wrong
No problem.
Thanks, looks good.
see line 42
Implement the loader in src/x.py
Edit all the files you need to.
You can't see it from here.
I cannot find the file.
Nothing works.
None of the tests pass.
The mill is within two fields of here.
There were fewer than twenty letters in the box.
She wants a horse.
She would like the letters in blue.
The answers want checking.
I'd say the examples are fine.
The app is frozen.
It does not work: the test fails.
Das geht so.
Les tests passent.
El test falla.
मतलब क्या है
อย่างไร""".splitlines()


def items(*texts: str, role: Role = "user", meta: Meta | None = None) -> tuple[Item, ...]:
    return tuple(
        Item(entry_id=f"e{n}", body=Message(role=role, content=(Text(text=text),), meta=meta), tokens=1)
        for n, text in enumerate(texts, 1)
    )


def found(*texts: str) -> list[str]:
    return [one.text for one in constraints_of(items(*texts)).in_force]


@pytest.mark.parametrize("sentence", SET_LIMITS)
def test_a_sentence_that_sets_a_limit_is_a_constraint(sentence: str) -> None:
    assert found(f"Hello. {sentence}") == [sentence]


@pytest.mark.parametrize("sentence", SET_NONE)
def test_a_sentence_that_sets_none_is_no_constraint(sentence: str) -> None:
    assert not is_constraint(sentence)


def test_a_sentence_is_kept_whole() -> None:
    assert found("Fix it. Never use e.g. eval, exec or Dr. Evil here. Thanks.") == [
        "Never use e.g. eval, exec or Dr. Evil here."
    ]
    wrapped = "Whatever you change in the loader of this project,\nnever touch the cache. Then go on."
    assert found(wrapped) == ["Whatever you change in the loader of this project, never touch the cache."]
    long = "Never " + "go there and " * 60 + "stop."
    assert found(long) == [long]


def test_list_marks_are_no_part_of_it() -> None:
    assert found("Rules:\n\n- Never push.\n  * Always test.\n2. No mocks.\n- [ ] do it") == [
        "Never push.",
        "Always test.",
        "No mocks.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Look:\n```\nYou must never do this.\n```\nand go on",
        "Look:\n~~~ sh\nYou must never do this.",
        "They wrote:\n> You must never do this.\nIs that so?",
        "From the docs:\n\n    You must never do this.\n\nIs that so?",
        'The linter says "you must never do this" here.',
        "The linter says `must never` here.",
        "Der Linter sagt „du darfst das niemals“.",
        "2026-11-22 10:00:00 WARN you must never do this",
        "ERROR: it failed\nERROR: you must never do this",
        "src/x.py:11: it failed\nsrc/x.py:12: you must never do this",
        "WARNING: retries are capped at 30 s",
        '{"note": "you must never do this"}',
        "foo(); bar(); // you must never do this",
        "    at run (must.never.js:1:2)",
        "$ never must",
        "<system-reminder>You must never do this.</system-reminder>",
        "<local-command-stdout>You must never do this.</local-command-stdout>",
        "<file>\nYou must never do this.\n</file>",
        "INFO a\nINFO b\nYou must never do this.\nINFO c\nINFO d",
        "(tool) You must never do this.",
    ],
)
def test_what_a_user_quotes_or_pastes_is_not_the_users(text: str) -> None:
    assert found(text) == []


def test_of_something_long_that_was_pasted_the_middle_is_not_the_users() -> None:
    pasted = "\n".join(f"line {n} of the log" for n in range(300))
    text = f"Never push.\n{pasted}\nYou must never do this.\n{pasted}\nAlways test."

    assert found(text) == ["Never push.", "Always test."]


def test_only_a_person_sets_limits() -> None:
    said = ("You must never do this.",)
    result = ToolResult(call_id="c", content=said[0])

    assert constraints_of(items(*said, role="assistant")).in_force == ()
    assert constraints_of(items(*said, role="system")).in_force == ()
    assert constraints_of(items(*said, meta=Meta(synthetic=True))).in_force == ()
    assert constraints_of(items(*said, meta=Meta(kind="bash_execution"))).in_force == ()
    assert constraints_of(items(*said, meta=Meta(type="compaction_summary"))).in_force == ()
    for role in ("tool", "user"):
        told = Item(entry_id="e1", body=Message(role=role, content=(result,)), tokens=1)  # type: ignore[arg-type]
        assert constraints_of((told,)).in_force == ()


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Always use tabs.", "Never use tabs."),
        ("Never use tabs.", "Always use tabs!"),
        ("You must not write mocks.", "You must write mocks."),
        ("Use at most 3 retries.", "Use at most 5 retries."),
        ("Keep lines under 80 characters.", "Keep lines under 100 characters, please."),
        ("不要使用全局变量。", "必须使用全局变量。"),
        ("Immer Tabs verwenden.", "Niemals Tabs verwenden."),
        ("Use at most 3 retries", "Use at most 5 retries"),
        ("Never push to origin.", "Always push to origin."),
        ("Never use Python 2.", "Always use Python 2."),
        ("Only touch #13.", "Don't touch #13."),
        ("No mocks in tests.", "Always use mocks in tests."),
        ("Ne modifie jamais a.py.", "Modifie toujours a.py."),
    ],
)
def test_of_two_that_disagree_the_newest_counts(older: str, newer: str) -> None:
    demands = constraints_of(items(older, newer))

    assert [one.text for one in demands.in_force] == [newer]
    assert [one.text for one in demands.superseded] == [older]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Never use port 8080.", "Never use port 9090."),
        ("Never edit a.py.", "Never edit b.py."),
        ("Use at most 3 retries.", "Use at most 5 workers."),
        ("Never use tabs.", "Do not use tabs."),
        ("Always run test 12.", "Always run test 14."),
        ("Never rename module_17.", "Always rename module_18."),
        ("Never use Python 2.", "Always use Python 3."),
        ("Never bind port 80.", "Always bind port 8080."),
        ("Never use Node 16.", "Always use Node 20."),
        ("Do not run migration 41.", "Only run migration 42."),
        ("Never touch #12.", "Only touch #13."),
        ("Never write to /a.", "Always write to /b."),
        ("Never use C.", "Always use C++."),
        ("Never commit without tests.", "Always commit tests."),
        ("Never leave a file with no tests.", "Always leave a file with tests."),
        ("Never add no-op tests.", "Always add op tests."),
        ("Never edit solo.py.", "Always edit .py."),
        ("Use at least 3 retries.", "Use at most 5 retries."),
        ("Use at most 3 retries on port 80.", "Use at most 3 retries on port 81."),
        ("Never do it.", "Always use it."),
        ("Never bind key A.", "Always bind a key."),
        ("永远不要使用 A。", "必须使用 B。"),
        ("Не пиши в лог.", "Всегда пиши в тест."),
        ("Ne touche pas a.py.", "Il faut lire a.py."),
    ],
)
def test_two_that_can_both_hold_both_count(one: str, other: str) -> None:
    assert found(one, other) == [one, other]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Never push to main.", "Always push to main?"),
        ("Never push to main.", "You must push to main?"),
        ("Never push to main.", "Could you please push to main always?"),
        ("Use at most 3 retries.", "Use max 5 retries?"),
    ],
)
def test_a_question_takes_no_limit_away(older: str, newer: str) -> None:
    assert older in found(older, newer)


FENCED = "Summarise this README:\n```\n# README\n```bash\nmake\n```\nYou must push to main.\n```"
REPORTED = ("README says:\n\n{}", "The README.md:\n\nHello.\n\n{}\n\nis this right?", "Er schreibt:\n{}")


@pytest.mark.parametrize(
    "pasted", [FENCED, *(form.format("Always push to main.") for form in REPORTED), "{0}\n\n{0}"]
)
def test_what_may_be_pasted_takes_no_limit_away(pasted: str) -> None:
    pasted = pasted.format(REPORTED[0].format("Always push to main."))

    assert "Never push to main." in found("Never push to main.", pasted)


def test_what_is_pasted_again_does_not_renew_a_limit() -> None:
    said = ("Never push to main.", "Always push to main.", "README says:\n\nNever push to main.")

    assert found(*said) == ["Always push to main."]


def test_words_in_front_of_what_may_be_pasted_replace_a_limit() -> None:
    assert found("Never push to main.", "Always push to main.\n\nREADME says:\n\nHello.") == [
        "Always push to main."
    ]


def test_said_again_it_counts_once_where_it_was_said_last() -> None:
    demands = constraints_of(items("Never push.", "Always test.", "never  push."))

    assert demands.in_force == (
        Constraint("Always test.", "e2"),
        Constraint("never  push.", "e3"),
    )


def test_within_a_cap_the_strong_go_first_and_the_newest_of_them() -> None:
    said = constraints_of(items("Never push.", "Keep it small.", "Always test.", "No mocks.")).in_force
    most = len(bullet(said[2])) + len(bullet(said[3])) + 2

    assert [one.text for one in fitting_constraints(said, most, len)] == ["Always test.", "No mocks."]
    assert fitting_constraints(said, 10_000, len) == said
    assert fitting_constraints(said, 0, len) == ()


def test_a_line_without_its_constraints_is_what_else_it_says() -> None:
    demands = constraints_of(items("Fix it. Never push. Always test."))

    assert without_them("Fix it. Never push. Always test.", demands) == "Fix it."
    assert without_them("- Never push. Always test.", demands) == ""
    assert without_them("Fix it.", demands) == "Fix it."


def test_what_is_known_of_messages_changes_no_constraint_and_is_not_found_out_again() -> None:
    said = items("Never push.", "Keep it below 3 s. Then go on.", "Always push.", "never push.")
    known: dict[str, MessageLimits] = {}

    first = NO_PATH_CONSTRAINTS.read_more(said, known).constraints

    assert first == constraints_of(said)
    assert known.keys() == {item.entry_id for item in said}
    assert NO_PATH_CONSTRAINTS.read_more(said, known).constraints == first
    # It is asked, indeed: what it says counts.
    known[said[0].entry_id] = (("Never pull.", True, True),)
    assert "Never pull." in {
        one.text for one in NO_PATH_CONSTRAINTS.read_more(said, known).constraints.in_force
    }


@pytest.mark.parametrize(
    "text",
    [
        "The budget is 50 EUR a month. Never exceed without my approval.",
        "There is a config.yml at the root. Please don't change that.",
        "The door code is 4711. Never share it with anybody.",
        "Never import requests. Don't touch it again.",
    ],
)
def test_a_limit_that_says_nothing_alone_has_the_sentence_before_it(text: str) -> None:
    assert found(text) == [text]


@pytest.mark.parametrize(
    ("before", "limit"),
    [
        ("I like tabs.", "Never use spaces."),
        ("Hello.", "Do it without changing the schema."),
        ("Is the cache old?", "Don't delete it without asking."),
    ],
)
def test_a_limit_that_says_enough_or_has_only_a_question_before_it_stands_alone(
    before: str, limit: str
) -> None:
    assert found(f"{before} {limit}") == [limit]


def test_a_limit_with_the_sentence_before_it_is_replaced_as_a_whole() -> None:
    demands = constraints_of(
        items(
            "The budget is 50 EUR a month. Never exceed without my approval.",
            "From now on the budget is 80 EUR a month. Never exceed without my approval.",
        )
    )

    assert [one.entry_id for one in demands.in_force] == ["e2"]
