"""A client built only from generated types: `python client.py COMMAND ARGUMENTS...`, next to `protocol`."""

from __future__ import annotations

import json
import subprocess
import sys

import protocol
from pydantic import BaseModel, TypeAdapter

daemon = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
EVENT = TypeAdapter(protocol.Compactd.model_fields["event"].annotation)
events = []


def ask(method: str, params: BaseModel, result: type[BaseModel]):
    """The typed answer; events that come before it are typed, too."""
    given = params.model_dump(mode="json", exclude_unset=True)
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": given})
    daemon.stdin.write(line.encode() + b"\n")
    daemon.stdin.flush()
    while True:
        told = json.loads(daemon.stdout.readline())
        if told.get("method") == "agent/event":
            events.append(EVENT.validate_python(told["params"]))
        elif told.get("id") == 1:
            return result.model_validate(told["result"])


started = ask(
    "session/start",
    protocol.StartParams(session_id="generated", compaction=protocol.GivenSettings(context_window=20_000)),
    protocol.StartResult,
)
messages = [
    protocol.Message(role="assistant" if n % 2 else "user", content=f"line {n} " * 200).model_dump(
        mode="json", exclude_unset=True
    )
    for n in range(40)
]
appended = ask(
    "session/append",
    protocol.AppendParams(session_id=started.session_id, messages=messages),
    protocol.AppendResult,
)
session = protocol.SessionParams(session_id=started.session_id)
begun = ask("turn/begin", session, protocol.BeginResult)
context = ask(
    "session/context",
    protocol.ContextParams(session_id=started.session_id, format="openai"),
    protocol.ContextResult,
)
listed = ask("session/list", protocol.Nothing(), protocol.ListResult)
state = ask("agent/state", session, protocol.StateResult)
daemon.stdin.close()
print(
    json.dumps(
        {
            "appended": len(appended.entry_ids),
            "decision": appended.decision.kind.value,
            "compacted": begun.compaction.compacted,
            "first_role": context.messages[0]["role"],
            "fits": context.tokens < 20_000,
            "listed": [one.session_id for one in listed.sessions],
            "window": state.token_usage.context_window,
            "events": sorted({type(event).__name__ for event in events}),
            "exit_code": daemon.wait(timeout=30),
        }
    )
)
