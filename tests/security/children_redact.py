"""Redacts a message in many copies of a data folder, each time killed at a different file operation.

`python -m tests.security.children_redact FOLDER SESSION ENTRY`: for N = 0, 1, 2, ... a process redacts the
message in a copy `FOLDER-N` and kills itself with SIGKILL before the N-th time that it opens, renames or
removes something there. It stops when a process reaches its end, and prints how many were killed. Python's
audit hooks (`sys.addaudithook`, PEP 578) report each file operation, so nothing of the daemon is replaced.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sys

# The daemon's modules are imported once, here, and not in each process that is killed.
from compactd.__main__ import main as serve

TOUCHES = (
    "open",
    "os.rename",
    "os.remove",
    "os.truncate",
    "os.mkdir",
    "os.rmdir",
    "shutil.rmtree",
    "fcntl.flock",
)


def killed(folder: str, number: int, requests: bytes) -> bool:
    """Serve the requests on the folder in a forked process. Return whether it killed itself."""
    pid = os.fork()
    if pid == 0:
        left = [number]

        def count(event: str, arguments: tuple[object, ...]) -> None:
            if event in TOUCHES and (event == "fcntl.flock" or folder in str(arguments[0])):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1

        reader, writer = os.pipe()
        os.write(writer, requests)
        os.close(writer)
        os.dup2(reader, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdin, sys.stdout = io.TextIOWrapper(io.FileIO(0)), io.TextIOWrapper(io.FileIO(1, "w"))
        os.environ["COMPACTD_HOME"] = folder
        sys.argv = ["compactd", "serve"]
        sys.addaudithook(count)
        os._exit(serve() or 0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def redacted() -> None:
    """Redact copies until a process is not killed. Print how many were killed."""
    folder, session, entry = sys.argv[1:]
    asked = (
        ("session/start", {"session_id": session}),
        ("session/redact", {"session_id": session, "entry_ids": [entry]}),
    )
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(asked)
    ]
    number = 0
    while True:
        copy = f"{folder}-{number}"
        shutil.copytree(folder, copy)
        if not killed(copy, number, ("\n".join(lines) + "\n").encode()):
            break
        number += 1
    print(number)


if __name__ == "__main__":
    redacted()
