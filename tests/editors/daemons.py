"""Faulty daemons, as commands that an agent's extension can be set to run."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from tests.editors.terminal import program

DYING = """\
#!{python}
# The real daemon, killed when the first compaction is asked for.
import os, subprocess, sys

child = subprocess.Popen([{daemon!r}, *sys.argv[1:]], stdin=subprocess.PIPE)
for line in sys.stdin.buffer:
    if b'"session/compact"' in line and not os.path.exists({mark!r}):
        open({mark!r}, "w").close()
        child.kill()
        child.wait()
        os._exit(1)
    child.stdin.write(line)
    child.stdin.flush()
child.stdin.close()
child.wait()
"""

NEWER = """\
#!{python}
# A daemon of a protocol to come.
import json, sys

for line in sys.stdin:
    answer = {{"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {{"protocol_version": "2.0"}}}}
    print(json.dumps(answer), flush=True)
"""

DEAF = """\
#!/bin/sh
# Reads and never answers.
exec cat >/dev/null
"""

NAMED = """\
#!/bin/sh
# The real daemon, with its process id in a file.
echo $$ >>{mark!r}
exec {daemon!r} "$@"
"""


def daemon(folder: Path, text: str) -> Path:
    """Write one of these daemons as a program into `folder`. Return its path."""
    path = folder / "daemon"
    real = program("compactd", install="pip install -e .")
    path.write_text(text.format(python=sys.executable, daemon=real, mark=str(folder / "mark")))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
