"""Lines of "Never again" without a number: faults of real systems in addition to R1 to R29.

The other lines are the subjects of `test_regressions*.py`; `docs/regressions.md` has all of them.
"""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_disk import limited_to
from tests.properties.stalled import compacting
from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback
from tests.support.talk import CHARS4, Message, assistant, result, turns, user
from tests.support.views import Seen, seen
from tests.support.wire import MODEL, SUMMARY, append, compact, started, view

# --- CJK counted at a quarter -----------------------------------------------------------------------

PROSE = {
    "Chinese": "加载器的缓存已经过期，请先修复它，不要改动公共接口。测试在夜里失败了三次。",
    "Japanese": "ローダーのキャッシュが古いので、まず直してください。公開の部分には触れないで。",
    "Korean": "로더의 캐시가 오래되었으니 먼저 고쳐 주세요. 밤에 세 번 실패했습니다.",
}
"""Made-up sentences, by language."""


@pytest.mark.parametrize("language", PROSE)
def test_cjk_is_not_counted_at_a_quarter_of_a_token_a_character(daemon: Daemon, language: str) -> None:
    """Characters ÷ 4 is a third of what such text takes: the window overflows long before the trigger."""
    text = PROSE[language] * 60
    exact = daemon.call("tokens/count", model="openai/gpt-4o", text=text)
    session = str(daemon.call("session/start", compaction={"context_window": 100_000})["session_id"])

    used = append(daemon, session, user(0, content=text))["decision"]["used"]

    assert exact["exact"] is True
    assert 0.75 * exact["tokens"] < used < 1.45 * exact["tokens"]
    assert used > 1.5 * len(text) / 4
    assert daemon.call("session/context", session_id=session)["tokens"] == used


# --- base64 counted as text -------------------------------------------------------------------------


def picture(width: int, height: int, size_bytes: int) -> str:
    """A PNG's head and so many bytes after it, in base64."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return base64.b64encode(head + bytes(range(256)) * (size_bytes // 256)).decode()


IMAGE = {"type": "image", "media_type": "image/png"}
PICTURE = picture(1000, 750, 600_000)


@pytest.mark.parametrize(
    "block",
    [
        {**IMAGE, "data": PICTURE},
        {**IMAGE, "url": f"data:image/png;base64,{PICTURE}"},
        {"type": "tool_result", "call_id": "c", "content": [{**IMAGE, "data": PICTURE}]},
    ],
    ids=["data", "data URL", "in a tool result"],
)
def test_base64_is_not_counted_as_text_and_goes_to_no_summariser(
    daemon: Daemon, server: Loopback, block: dict[str, Any]
) -> None:
    """800,000 characters of base64 are 200,000 tokens of text, and a picture of 1000."""
    server.play(Answer(text=SUMMARY))
    session = started(daemon, "default", 100_000, settings={"model": MODEL})
    shown: Message = {"role": "user", "content": [block]}

    used = append(daemon, session, assistant(10, "c"), shown, *turns(10, 300))["decision"]["used"]
    done = compact(daemon, session, keep_recent=600)

    assert used == 10 + 1000 + 6000
    assert done["strategy"] == "summarize"
    sent = server.requests[0].raw.decode()
    assert PICTURE[1000:1100] not in sent
    assert len(sent) < 40_000


# --- a failed compaction that emptied the transcript ------------------------------------------------


def cancelled(daemon: Daemon, server: Loopback, session: str) -> None:
    """A compaction that is cancelled while its summary comes."""
    asked = compacting(daemon, server, session)
    daemon.notify("$/cancelRequest", id=asked)
    assert daemon.refused(asked).code == -32800


def too_small(daemon: Daemon, server: Loopback, session: str) -> None:
    """A compaction into less than there can be."""
    assert daemon.refusal("session/compact", session_id=session, target_tokens=5).code == 1008


def closed(daemon: Daemon, server: Loopback, session: str) -> None:
    """A compaction in which the session is closed."""
    asked = compacting(daemon, server, session)
    daemon.call("session/close", session_id=session)
    assert daemon.refused(asked).code == -32800
    daemon.call("session/start", session_id=session)


@pytest.mark.parametrize("failed", [cancelled, too_small, closed], ids=lambda one: one.__name__)
def test_a_failed_compaction_leaves_the_transcript_as_it_was(
    daemon: Daemon, server: Loopback, failed: Any
) -> None:
    """A system that removes the old messages first has nothing left if the summary fails."""
    session = started(daemon, "default", 100_000, settings={"model": MODEL})
    append(daemon, session, *turns(10, 300))
    before = seen(daemon, session)

    failed(daemon, server, session)

    assert same(before, seen(daemon, session))
    assert len(view(daemon, session)) == 20


def test_a_compaction_that_the_disk_has_no_room_for_leaves_the_transcript_as_it_was(
    tmp_path: Path,
) -> None:
    """Here the record of the compaction cannot be written. The transcript is the same, also after a
    restart."""
    home = tmp_path / "home"
    with Daemon(home) as daemon:
        session = started(daemon, "default", 100_000)
        append(daemon, session, *turns(10, 300))
        before = view(daemon, session)
        assert daemon.stop() == 0
    (journal,) = home.rglob("*.jsonl")
    with Daemon(home, command=limited_to(journal.stat().st_size + 700)) as full:
        full.call("session/start", session_id=session)
        assert full.refusal("session/compact", session_id=session, keep_recent=600).code == 1005
        assert view(full, session) == before
        full.kill()
    with Daemon(home) as again:
        again.call("session/start", session_id=session)
        assert view(again, session) == before


def same(before: Seen, after: Seen) -> bool:
    """Return whether a client sees the same conversation. The history also has the compaction that failed."""
    known, now = (json.loads(one.history[:-2])["entries"] for one in (before, after))
    return (after.context, after.state) == (before.context, before.state) and now[: len(known)] == known


# --- input acknowledged and dropped during a compaction ---------------------------------------------


@pytest.mark.parametrize("profile", ["default", "opal", "klaude", "evmts", "opencode"])
def test_what_is_acknowledged_during_a_compaction_is_not_dropped(spawn: Any, profile: str) -> None:
    """Under `opencode` nothing is kept verbatim, so that what comes meanwhile is all the tail there is.

    The client is asked before the compaction, and so decides how long it lasts.
    """
    hooked = spawn()
    session = started(
        hooked, profile, 100_000, settings=CHARS4, client={"name": "a test", "compaction_hook": True}
    )
    append(hooked, session, *turns(10, 300), assistant(10, "c"), result("c", 200), assistant(50))
    asked = hooked.ask("session/compact", session_id=session)
    if profile in ("default", "opal", "klaude"):  # 20,000 tokens are kept: all there is
        assert hooked.result(asked)["compacted"] is False
        asked = hooked.ask("session/compact", session_id=session, keep_recent=600)
    question = hooked.wait(lambda got: got.value.get("method") == "session/compacting", "the hook")

    meanwhile = append(hooked, session, user(0, content="And one more thing."), assistant(5, "d"))
    ended = hooked.call("turn/end", session_id=session, messages=[result("d", 5), assistant(7)])
    assert not hooked.answered_so_far(asked)
    hooked.send(json.dumps({"jsonrpc": "2.0", "id": question.value["id"], "result": {}}).encode())

    assert hooked.result(asked)["compacted"] is True
    acknowledged = [*meanwhile["entry_ids"], *ended["entry_ids"]]
    after = view(hooked, session)
    assert [message["entry_id"] for message in after[-4:]] == acknowledged
    hooked.kill()
    again = spawn()
    again.call("session/start", session_id=session)
    assert view(again, session) == after
