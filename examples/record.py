"""Records examples/session.jsonl: work on this repository, performed on a scratch copy of it.

The words of the user and the agent are written below. The tool results are real: every file read, search,
edit and test run happens on the copy, in which a bug was planted first. `python -m examples.record` records
the session again. If the code has changed and a scene no longer fits, it says which.

This file is longer than others because it is one session, to be read from top to bottom.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from examples.stage import Stage, bash, edit, read, scratch_copy, write

TARGET = Path(__file__).with_name("session.jsonl")
SEARCH = "server/compactd/search.py"
TESTS = "tests/test_search.py"
RUN = "python -m pytest tests/test_search.py -p no:cacheprovider -p no:xdist"

GOOD_PLACE = """    # Folding may lengthen a text (ß becomes ss): then the place is looked for again from there.
    return at if len(folded) == len(text) else _place(text, at)


def _place(text: str, folded_at: int) -> int:
    length = 0
    for index, char in enumerate(text):
        if length >= folded_at:
            return index
        length += len(char.casefold())
    return len(text)
"""


def plant(scratch: Path) -> None:
    """Plants the bug: a position in the folded text is used as a position in the text. Removes the tests for
    it.
    """
    file = scratch / SEARCH
    text = file.read_text("utf-8")
    if GOOD_PLACE not in text:
        raise SystemExit(f"the script no longer fits: {SEARCH} has changed")
    file.write_text(text.replace(GOOD_PLACE, "    return at\n"), "utf-8")
    (scratch / TESTS).unlink()


def play(s: Stage) -> None:
    """Runs the session."""
    asked(s)
    explored(s)
    reproduced(s)
    first_wrong_turn(s)
    second_wrong_turn(s)
    decided_and_reversed(s)
    fixed(s)
    words(s)
    speed(s)
    undo(s)
    paging(s)
    finished(s)


def asked(s: Stage) -> None:
    """The user reports the bug and sets limits."""
    s.user(
        'session/search shows the wrong place. A user searched a German build log for "timeout" and the '
        "snippet began hundreds of characters too late; the word itself was not in it. Find out why and fix it.\n\n"
        "- Never change the wire format of session/search: other teams' clients are written against it.\n"
        "- No new dependency.\n"
        "- search() must stay linear in the length of the text.\n"
        "- Don't touch core/ for this.\n"
        "- Always run ruff and the tests before you say that something is done."
    )


def explored(s: Stage) -> None:
    """The agent reads the code."""
    s.say(
        "I'll look at where search lives and who calls it.",
        bash("ls server/compactd server/compactd/rpc"),
        bash(
            "grep -rn 'search' server/compactd --include='*.py' | grep -v '^server/compactd/core' | head -40"
        ),
    )
    s.say("The search itself is one small file.", read(SEARCH))
    s.say(
        "The handler that calls it, and what goes over the wire:",
        bash("grep -n 'def session_search' -A 30 server/compactd/rpc/handlers.py"),
        bash("grep -n 'class Hit' -B 12 -A 16 server/compactd/rpc/wire.py"),
    )
    s.say(
        "`items` comes from the fold; I want to see what an item holds.",
        read("server/compactd/core/entries.py"),
    )
    s.say("And how the fold fills them.", read("server/compactd/core/fold.py"))
    s.say(
        "Messages are decoded here; a string is one text block.", read("server/compactd/formats/neutral.py")
    )
    s.say(
        "Which tests are there for search so far?",
        bash("ls tests tests/core tests/formats; grep -rln 'search' tests | sort"),
    )


def reproduced(s: Stage) -> None:
    """The agent reproduces the bug."""
    s.say(
        "There are none for the snippet. First the complaint as a script: a long German line with the word in "
        "the middle.",
        write(
            "repro.py",
            "import msgspec\n\n"
            "from compactd.core.entries import Item\n"
            "from compactd.formats.neutral import decode_message\n"
            "from compactd.search import search\n\n"
            "def item(text):\n"
            "    raw = msgspec.json.encode({'role': 'user', 'content': text})\n"
            "    return Item(entry_id='e1', message=decode_message(raw), tokens=1)\n\n"
            "english = 'the street is long. ' * 400\n"
            "german = 'die Straße ist lang. ' * 400\n"
            "if __name__ == '__main__':\n"
            "    for name, around in (('english', english), ('german', german)):\n"
            "        found = search([item(around + 'the timeout was 30 s. ' + around)], 'timeout', 1)\n"
            "        print(name, 'timeout' in found[0].snippet, repr(found[0].snippet))\n",
        ),
        bash("python repro.py"),
    )
    s.say(
        "Reproduced: English is right, German is off, and the longer the log the further. Something grows by one "
        "with each `ß`, or with each line.",
    )


def first_wrong_turn(s: Stage) -> None:
    """The agent suspects the folding of white space, and is wrong."""
    s.say(
        "My first suspicion is the folding of white space: `_snippet` joins on single spaces after it has cut. "
        "I'll try to cut after the folding instead.",
        edit(
            SEARCH,
            '    middle = " ".join(text[start:end].split())\n',
            '    middle = " ".join(text.split())[start:end]\n',
        ),
        bash("python repro.py"),
    )
    s.say(
        "No change for German, and it would be quadratic work for each hit. Wrong turn: taking it back.",
        edit(
            SEARCH,
            '    middle = " ".join(text.split())[start:end]\n',
            '    middle = " ".join(text[start:end].split())\n',
        ),
        bash("python repro.py"),
    )


def second_wrong_turn(s: Stage) -> None:
    """The agent suspects the encoding of the text, and is wrong."""
    s.say(
        "Perhaps the text is not what was sent: bytes against code points in the journal or in the transport? "
        "`ß` is two bytes in UTF-8. I'll follow a message from the wire to the item.",
        read("server/compactd/rpc/framing.py"),
        read("server/compactd/store/records.py"),
    )
    s.say(
        "Lengths are in bytes only at the frame and in the record; the text is decoded by msgspec. Let me see the "
        "intake and the session, too.",
        read("server/compactd/core/intake.py"),
        read("server/compactd/session.py"),
    )
    s.say(
        "Nothing here counts characters. I'll measure it instead of reading on: does the item hold the text as it was?",
        bash(
            "python - <<'EOF'\n"
            "from repro import item\n"
            "text = 'die Straße ist lang. '\n"
            "held = item(text).message.content[0].text\n"
            "print(held == text, len(held), len(held.encode()), len(held.casefold()))\n"
            "EOF"
        ),
    )
    s.say(
        "The text is intact, so the transport is innocent: second wrong turn. But the last number says it: the text has "
        "one character less than its `casefold()`. `'ß'.casefold()` is `'ss'`. `_find` looks in the folded text "
        "and gives back a place in *that*, and `_snippet` cuts the original with it. Root cause: an index into "
        "the folded text is used on the original one.",
        bash("grep -n '_find' -A 6 server/compactd/search.py"),
        bash("python -c \"print([(c, c.casefold(), len(c.casefold())) for c in 'ßİŉﬁΐ'])\""),
    )


def decided_and_reversed(s: Stage) -> None:
    """The agent decides to use `str.lower()`, then takes the decision back."""
    s.say(
        "Decision: use `str.lower()` instead of `casefold()`, because lower-casing keeps `ß` as one character, so "
        "places in both texts agree. Tests first.",
        write(
            TESTS,
            '"""Search: what is found, and what of it is shown."""\n\n'
            "from __future__ import annotations\n\n"
            "import msgspec\n\n"
            "from compactd.core.entries import Item\n"
            "from compactd.formats.neutral import decode_message\n"
            "from compactd.search import search\n\n\n"
            "def item(number: int, text: str) -> Item:\n"
            '    raw = msgspec.json.encode({"role": "user", "content": text})\n'
            '    return Item(entry_id=f"e{number}", message=decode_message(raw), tokens=1)\n\n\n'
            "def test_case_is_ignored_and_the_newest_comes_first() -> None:\n"
            '    items = [item(1, "the Cache is stale"), item(2, "nothing"), item(3, "CACHE again")]\n\n'
            '    assert [found.item.entry_id for found in search(items, "cache", 10)] == ["e3", "e1"]\n\n\n'
            "def test_a_snippet_shows_the_hit_where_folding_lengthens_the_text() -> None:\n"
            '    before = "Straße " * 300\n'
            '    found = search([item(1, f"{before}the timeout was 30 s {before}")], "TIMEOUT", 1)\n\n'
            '    assert "the timeout was 30 s" in found[0].snippet\n',
        ),
        bash(RUN),
    )
    s.say(
        "Red, as it should be. Now the change.",
        edit(SEARCH, "    wanted = query.casefold()\n", "    wanted = query.lower()\n"),
        edit(SEARCH, "    folded = text.casefold()\n", "    folded = text.lower()\n"),
        bash(RUN),
    )
    s.say(
        "Green. But is it true that `lower()` never changes the length?",
        bash(
            'python -c "print([(hex(n), len(chr(n).lower())) for n in range(0x110000) if len(chr(n).lower()) != 1])"'
        ),
    )
    s.user(
        "Wait: people type STRASSE and expect to find Straße, that works today and must go on working. "
        "So keep casefold. Do it right instead: map the place in the folded text back to the original."
    )
    s.say(
        "Agreed, and `lower()` would still be off by one after each `İ`. The decision is reversed: casefold stays, "
        "the place is mapped back. I'll put both into tests before I touch the code again.",
        edit(
            TESTS,
            '    assert "the timeout was 30 s" in found[0].snippet\n',
            '    assert "the timeout was 30 s" in found[0].snippet\n\n\n'
            "def test_a_word_is_found_by_its_folded_form() -> None:\n"
            '    assert search([item(1, "die Straße ist lang")], "STRASSE", 1)[0].snippet == "die Straße ist lang"\n\n\n'
            "def test_a_dotted_capital_i_moves_nothing() -> None:\n"
            '    found = search([item(1, "İ" * 400 + " the needle " + "İ" * 400)], "needle", 1)\n\n'
            '    assert " the needle " in found[0].snippet\n',
        ),
        bash(RUN),
    )


def fixed(s: Stage) -> None:
    """The agent fixes the bug and tests the fix."""
    s.say(
        "Two red for two reasons. Back to casefold, with the place mapped: the folded length is summed up character by "
        "character, only for a text whose length changed, so it stays linear.",
        edit(SEARCH, "    wanted = query.lower()\n", "    wanted = query.casefold()\n"),
        edit(
            SEARCH,
            "    folded = text.lower()\n    at = folded.find(wanted)\n    if at < 0:\n        return None\n    return at\n",
            "    folded = text.casefold()\n    at = folded.find(wanted)\n    if at < 0:\n        return None\n"
            + GOOD_PLACE,
        ),
        bash(RUN),
    )
    s.say(
        "Green. ruff and the reproduction:",
        bash(
            "ruff check server/compactd/search.py tests/test_search.py && ruff format --check server/compactd/search.py tests/test_search.py"
        ),
        bash("python repro.py"),
    )
    s.say(
        "The handler still answers the same fields; nothing on the wire changed.",
        bash("git --version >/dev/null; grep -n 'wire.Hit(' -A 8 server/compactd/rpc/handlers.py"),
    )
    s.say(
        "Fixed. Cause: `_find` gave back an index into the case-folded text. Now it is mapped back to the original "
        "(`_place`), only where folding changed the length. Tests: test_search.py, 4 passed. ruff clean."
    )


def words(s: Stage) -> None:
    """The user asks for a limit on the length of snippets."""
    s.user(
        "Good. While you are there: a snippet must not be longer than 160 characters plus the two marks, whatever "
        "the query is. I think a query of 500 characters gives a snippet of 500. Prefer cutting the hit over "
        "showing it all."
    )
    s.say(
        "Checking that before I believe it.",
        bash(
            "python - <<'EOF'\n"
            "from repro import item\n"
            "from compactd.search import search\n"
            "long = 'ab ' * 200\n"
            "print(len(search([item(long + long)], long, 1)[0].snippet))\n"
            "EOF"
        ),
        read(SEARCH, 60, 40),
    )
    s.say(
        "True: `around` is 0 then, but the hit itself is shown whole. A test, then the limit.",
        edit(
            TESTS,
            "from compactd.search import search\n",
            "from compactd.search import SNIPPET_CHARS, search\n",
        ),
        edit(
            TESTS,
            "def test_a_word_is_found_by_its_folded_form() -> None:\n",
            "def test_a_snippet_is_short_however_long_the_query_is() -> None:\n"
            '    long = "ab " * 200\n'
            "    found = search([item(1, long + long)], long, 1)\n\n"
            "    assert len(found[0].snippet) <= SNIPPET_CHARS + 2\n\n\n"
            "def test_a_word_is_found_by_its_folded_form() -> None:\n",
        ),
        bash(RUN),
    )
    s.say(
        "Red. The end is limited from the start on:",
        edit(
            SEARCH,
            "    start, end = max(0, at - around), min(len(text), at + length + around)\n",
            "    start = max(0, at - around)\n"
            "    end = min(len(text), at + length + around, start + SNIPPET_CHARS)\n",
        ),
        bash(RUN),
        bash("ruff check server/compactd/search.py tests/test_search.py"),
    )
    s.say("Green and clean: 5 passed. The limit is SNIPPET_CHARS = 160, the marks come on top.")


def speed(s: Stage) -> None:
    """The agent measures the speed of the search."""
    s.user(
        "How long does a search take in a session of 1M tokens? It must not hold up other sessions: at most "
        "200 ms, and it has to run in a worker. Show me numbers, not opinions."
    )
    s.say(
        "I'll build such a session from the repository's own files and measure.",
        write(
            "measure.py",
            "import time\n"
            "from pathlib import Path\n"
            "from repro import item\n"
            "from compactd.search import search\n\n"
            "texts = [p.read_text('utf-8') for p in sorted(Path('server').rglob('*.py'))]\n"
            "items, size = [], 0\n"
            "while size < 4_000_000:\n"
            "    for text in texts:\n"
            "        items.append(item(text))\n"
            "        size += len(text)\n"
            "best = 9.9\n"
            "for _ in range(5):\n"
            "    began = time.perf_counter()\n"
            "    search(items, 'a text that is nowhere in it', 20)\n"
            "    best = min(best, time.perf_counter() - began)\n"
            "print(len(items) > 100, size >= 4_000_000, 'under 200 ms:', best < 0.2)\n",
        ),
        bash("python measure.py"),
    )
    s.say(
        "Under 200 ms for 4 million characters, about 1M tokens. Is it in a worker?",
        bash("grep -n 'in_worker' -r server/compactd --include='*.py' | head -30"),
        read("server/compactd/daemon.py"),
    )
    s.say(
        "Yes: `session_search` awaits `daemon.in_worker`, and the daemon sets a short switch interval, so the loop "
        "gets the interpreter back within half a millisecond. Where does the time go, then?",
        bash(
            "python - <<'EOF'\n"
            "import cProfile, pstats, io, contextlib\n"
            "with contextlib.redirect_stdout(io.StringIO()):\n"
            "    import measure\n"
            "from compactd.search import search\n"
            "p = cProfile.Profile()\n"
            "p.runcall(search, measure.items, 'nowhere at all', 20)\n"
            "out = io.StringIO()\n"
            "pstats.Stats(p, stream=out).sort_stats('cumulative').print_stats(8)\n"
            "for line in out.getvalue().splitlines():\n"
            "    if '{' in line or '(' in line:\n"
            "        print(line.split(None, 5)[-1])\n"
            "EOF"
        ),
    )
    s.say(
        "Nearly all of it is `str.casefold` and `str.find`, both in C. Nothing to win that would be worth its code: "
        "I leave it as it is."
    )
    s.user("Fine, leave it. Never trade readability for a few milliseconds here.")


def undo(s: Stage) -> None:
    """The user asks whether a hit's `in_context` is right after undo; the agent adds a test."""
    s.user(
        "Last thing: `in_context` of a hit. After a compaction it must be false for what was compacted away, and "
        "true again after session/undo. Is that so? Read, don't guess; then a test through the wire in tests/e2e."
    )
    s.say(
        "The handler takes what is shown from the fold's items.",
        bash("grep -n 'shown' -B2 -A4 server/compactd/rpc/handlers.py"),
        read("server/compactd/compacting.py"),
    )
    s.say(
        "How a step is taken back:",
        bash(
            "grep -n 'class Undone' -A 8 server/compactd/core/entries.py; grep -n '_rebuild' -A 32 server/compactd/core/fold.py | tail -60"
        ),
        read("server/compactd/sessions.py"),
    )
    s.say("And how the tests talk to the daemon.", bash("ls tests/e2e"), read("tests/e2e/client.py"))
    s.say(
        "So it is derived from the view each time. A test that shows it through the wire, with a client of ten lines of its own:",
        write(
            "tests/e2e/test_search_in_context.py",
            '"""What a search says about being in the context."""\n\n'
            "from __future__ import annotations\n\n"
            "import json\n"
            "import subprocess\n"
            "import sys\n"
            "from pathlib import Path\n\n\n"
            "def test_a_hit_leaves_the_context_with_a_compaction_and_comes_back_with_undo(tmp_path: Path) -> None:\n"
            "    requests = [\n"
            '        ("session/start", {"session_id": "s", "context_window": 50_000}),\n'
            '        ("session/append", {"session_id": "s", "messages": messages()}),\n'
            '        ("session/search", {"session_id": "s", "query": "needle"}),\n'
            '        ("session/compact", {"session_id": "s", "keep_recent": 500}),\n'
            '        ("session/search", {"session_id": "s", "query": "needle"}),\n'
            '        ("session/undo", {"session_id": "s"}),\n'
            '        ("session/search", {"session_id": "s", "query": "needle"}),\n'
            "    ]\n\n"
            "    answers = ask(tmp_path, requests)\n\n"
            '    seen = [answers[n]["hits"][0]["in_context"] for n in (2, 4, 6)]\n'
            "    assert seen == [True, False, True]\n\n\n"
            "def messages() -> list[dict[str, object]]:\n"
            '    first = {"role": "user", "content": "the needle is here"}\n'
            '    return [first, *({"role": role, "content": f"{n} words " * 60} for n in range(30) for role in ("assistant", "user"))]\n\n\n'
            "def ask(home: Path, requests: list[tuple[str, dict[str, object]]]) -> list[dict[str, object]]:\n"
            "    daemon = subprocess.Popen(\n"
            '        [sys.executable, "-m", "compactd", "serve"],\n'
            "        stdin=subprocess.PIPE,\n"
            "        stdout=subprocess.PIPE,\n"
            '        env={"COMPACTD_HOME": str(home), "PYTHONPATH": "server", "PATH": "/usr/bin:/bin"},\n'
            "    )\n"
            "    answers = []\n"
            "    for number, (method, params) in enumerate(requests):\n"
            '        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})\n'
            '        daemon.stdin.write(line.encode() + b"\\n")\n'
            "        daemon.stdin.flush()\n"
            "        while True:\n"
            "            answer = json.loads(daemon.stdout.readline())\n"
            '            if answer.get("id") == number:\n'
            '                answers.append(answer["result"])\n'
            "                break\n"
            "    daemon.communicate()\n"
            "    return answers\n",
        ),
        bash("python -m pytest tests/e2e/test_search_in_context.py -p no:cacheprovider -p no:xdist"),
    )
    s.say(
        "It is so: true, false, true. ruff on the new file:",
        bash(
            "ruff check tests/e2e/test_search_in_context.py; ruff format --diff tests/e2e/test_search_in_context.py"
        ),
    )
    s.say(
        "One line is too long. Formatting it.",
        bash(
            "ruff format tests/e2e/test_search_in_context.py && ruff check tests/e2e/test_search_in_context.py && python -m pytest tests/e2e/test_search_in_context.py tests/test_search.py -p no:cacheprovider -p no:xdist"
        ),
    )


def paging(s: Stage) -> None:
    """The user asks whether paging returns every entry once; the agent tests it and documents it."""
    s.user(
        "One thing a client author asked: session/history with `limit` gives `next`. If they go on from `next`, do "
        "they get every entry exactly once, compactions included? Show it with limits of 1, 2 and 7. If it is "
        "true, say so in protocol.md, in one sentence, not more."
    )
    s.say("Where the page is cut:", read("server/compactd/rpc/answers.py"))
    s.say(
        "`next` is the first row that did not fit, and `from` is inclusive: that should be right. One suspicion: a row "
        "that is left out (a compaction that was started and is done) must not become `next`.",
        bash("grep -n 'CompactionBegun' -r server/compactd --include='*.py'"),
    )
    s.say("It is left out before the limit is looked at. Shown through the wire, not argued:")
    s.say(
        "",
        write(
            "pages.py",
            "import json, subprocess, sys, tempfile\n\n"
            "daemon = subprocess.Popen([sys.executable, '-m', 'compactd', 'serve'], stdin=subprocess.PIPE,\n"
            "    stdout=subprocess.PIPE, env={'COMPACTD_HOME': tempfile.mkdtemp(), 'PYTHONPATH': 'server', 'PATH': '/usr/bin:/bin'})\n\n"
            "def call(method, **params):\n"
            "    call.number = getattr(call, 'number', 0) + 1\n"
            "    line = json.dumps({'jsonrpc': '2.0', 'id': call.number, 'method': method, 'params': params})\n"
            "    daemon.stdin.write(line.encode() + b'\\n'); daemon.stdin.flush()\n"
            "    while True:\n"
            "        answer = json.loads(daemon.stdout.readline())\n"
            "        if answer.get('id') == call.number:\n"
            "            return answer['result']\n\n"
            "call('session/start', session_id='s', context_window=50_000)\n"
            "for part in range(3):\n"
            "    call('session/append', session_id='s', messages=[\n"
            "        {'role': role, 'content': f'{part} {n} words ' * 50} for n in range(9) for role in ('user', 'assistant')])\n"
            "    print('compacted', call('session/compact', session_id='s', keep_recent=400)['compacted'])\n"
            "whole = [e['entry_id'] for e in call('session/history', session_id='s')['entries']]\n"
            "for limit in (1, 2, 7):\n"
            "    seen, at = [], None\n"
            "    while True:\n"
            "        page = call('session/history', session_id='s', limit=limit, **({'from': at} if at else {}))\n"
            "        seen += [e['entry_id'] for e in page['entries']]\n"
            "        at = page.get('next')\n"
            "        if at is None:\n"
            "            break\n"
            "    print('limit', limit, 'entries', len(seen), 'same as whole:', seen == whole)\n"
            "daemon.communicate()\n",
        ),
        bash("python pages.py"),
    )
    s.say(
        "Every entry exactly once, for all three. The kinds, to be sure that the compactions are among them:",
        bash(
            "grep -n 'kind=' server/compactd/rpc/answers.py; sed -n '/session\\/history/,/session\\/search/p' protocol.md | head -60"
        ),
    )
    s.say(
        "One sentence in protocol.md, in the paragraph about order. The tables below the mark are generated, so it goes above it.",
        bash("grep -n 'generated by' protocol.md; grep -n 'Slow readers' -B 3 protocol.md"),
        edit(
            "protocol.md",
            "- **Slow readers.**",
            "- **Pages.** `session/history` with `limit` answers `next`: go on with it as `from` and every entry comes once.\n"
            "- **Slow readers.**",
        ),
        bash("python -m compactd.rpc.schema; echo exit $?"),
        bash("rm pages.py; sed -n '/Pages/,/Slow/p' protocol.md"),
    )
    s.user("Good. Keep it at that.")


def finished(s: Stage) -> None:
    """The agent runs all checks and reports."""
    s.say(
        "Before I call it done: everything near it, and the import rules.",
        bash(
            "python -m pytest tests/core/test_fold.py tests/formats tests/test_search.py -p no:cacheprovider -p no:xdist 2>&1 | tail -5"
        ),
        bash("mypy --strict server/compactd/search.py 2>&1 | tail -3"),
        bash("rm -f repro.py measure.py; ls"),
    )
    s.say("A line for the change log:", read("CHANGELOG.md"), read("protocol.md", 1, 90))
    s.say(
        "",
        edit(
            "CHANGELOG.md",
            "## Unreleased\n",
            "## Unreleased\n\n- `session/search` shows the place of the hit in texts with ß, İ and their like, and never more than "
            "160 characters of it.\n",
        ),
        bash("head -12 CHANGELOG.md"),
    )
    s.user(
        "Good. Next we'll look at how session/expand pages through a large compaction. What is still open from your side?"
    )
    s.say(
        "Open:\n1. session/search answers the newest hit of a message only; a message with ten hits counts once. Not asked for, so "
        'not changed.\n2. A query that ends in the middle of a folded `ß` ("stras") is mapped to the character before. It shows the '
        "right words; I left it.\n\nDone: the place is mapped back (`_place` in server/compactd/search.py), snippets end at "
        "SNIPPET_CHARS, tests/test_search.py (5) and tests/e2e/test_search_in_context.py (1) are green, ruff and mypy clean. core/ and "
        "the wire format are untouched, no dependency was added."
    )


def main() -> int:
    """Records the session. Returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="compactd-record-") as folder:
        scratch = Path(folder).resolve() / "repo"
        scratch.mkdir()
        scratch_copy(scratch)
        plant(scratch)
        stage = Stage(scratch)
        play(stage)
        stage.save(TARGET)
    characters = sum(len(str(message["content"])) for message in stage.messages)
    print(f"{TARGET.name}: {len(stage.messages)} messages, {characters:,} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
