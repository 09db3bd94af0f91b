"""The scripted answers of the model in these tests, and the session files that are opened."""

from __future__ import annotations

import json
from typing import Any

from tests.support.loopback import Answer, Call
from tests.support.loopback.seen import Seen

LOADER = "CACHE = {}\n\n\ndef write(key, value):\n    STORE[key] = value\n"

PADDING = "\n".join(f"- `entry {n * 7}` of the store is read by line {n} of loader.py" for n in range(160))

HOSTILE_ANSWER = (
    '<script>window.ran = ["answer"]</script><img src=x onerror=alert(1)> [link](javascript:alert(2))\n'
    '```html\n<iframe srcdoc="<script>parent.ran=[1]</script>"></iframe>\n```\n'
)

MARKDOWN_ANSWER = """## What I found

The cache is **never** emptied. See [the manual](https://example.org/manual?page=1) and `loader.py`:

- [x] read the loader
- [ ] mend it
  1. first `write`
  2. then *tests*

| step | tokens |
|:-----|-------:|
| read | 1,200  |
| edit | `80`   |

> Never touch the public API.

```python
def write(key, value):
    STORE[key] = "<b>value</b>"

    CACHE.clear()
```
![a picture from elsewhere](http://127.0.0.1:9/pixel.png) and [a command](command:workbench.action.quit)."""

HOSTILE = [
    {
        "role": "user",
        "content": 'Mend <img src=x onerror="window.ran=[1]"> \u202egnp.exe\u202c $(trash) '
        "\x1b[31mred\x07 and go on",
    },
    {"role": "assistant", "content": "<script>window.ran=['message']</script><svg onload=alert(1)>"},
    {"role": "user", "content": "<style>*{display:none}</style>\u2066\u2069\u200bIs it hidden?"},
    {"role": "assistant", "content": '"><iframe src="javascript:alert(1)"></iframe>${7*7}{{7*7}}'},
]
"""A session file's messages, in OpenAI's shape."""


def _call(name: str, **arguments: Any) -> Call:
    return Call(name=name, arguments=json.dumps(arguments), id=f"call_{name}")


def _talk(text: str, *calls: Call) -> Answer:
    return Answer(text=text, calls=calls, count_input=True, chunk_chars=24)


EDIT = _call("edit_file", path="loader.py", old_text="STORE[key] = value",
             new_text="STORE[key] = value\n    CACHE.clear()")  # fmt: skip

SAYS: dict[str, tuple[Answer, Answer]] = {
    "Where is the cache": (
        _talk("I look at the loader.", _call("read_file", path="loader.py")),
        _talk(f"The cache is emptied in `loader.py` alone. The code word is magpie.\n\n{PADDING}"),
    ),
    "Then empty it": (_talk("", EDIT), _talk(f"Done: every write empties it.\n\n{PADDING}")),
    "Run the tests": (
        _talk("", _call("run_command", command="echo 3 passed")),
        _talk("All green: 3 passed."),
    ),
    "Read a secret": (
        _talk("", _call("read_file", path="../../outside.txt")),
        _talk("I may not read that."),
    ),
    "What was the code word": (_talk("It was the magpie, as before."),) * 2,
    "<b>bold</b>": (_talk(HOSTILE_ANSWER),) * 2,
    "What did you find": (_talk(MARKDOWN_ANSWER),) * 2,
}
"""Two answers for each beginning of the user's newest words: the first one, and the one after its tool's
result."""


def reply(seen: Seen) -> Answer:
    """The model's answer to a request in OpenAI's shape."""
    messages = seen.body["messages"]
    at = max(i for i, message in enumerate(messages) if message["role"] == "user")
    asked = messages[at]["content"]
    text = asked if isinstance(asked, str) else " ".join(part.get("text", "") for part in asked)
    is_behind = any(message["role"] == "tool" for message in messages[at:])
    for words, (first, then) in SAYS.items():
        if words in text:
            return then if is_behind else first
    return _talk("ok")


def long_session(entries: int) -> list[dict[str, str]]:
    """A session file's messages, in OpenAI's shape."""
    words = " ".join(f"word{n}" for n in range(60))
    return [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"Message number {n}. {words}"}
        for n in range(entries)
    ]
