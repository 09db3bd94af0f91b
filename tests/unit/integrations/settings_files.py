"""Settings files as people and agents write them: each can be changed. Gemini CLI accepts all of them."""

from __future__ import annotations

OWN_HOOK = '{"type": "command", "command": "~/bin/mine.sh", "timeout": 5}'

ODD: dict[str, str] = {
    "empty file": "",
    "white space": "  \n\n",
    "empty object": "{}",
    "empty object, line end": "{}\n",
    "empty object, parted": "{\n}\n",
    "one member": '{\n  "model": "opus"\n}\n',
    "no line end": '{\n  "model": "opus"\n}',
    "on one line": '{"model": "opus", "theme": "dark"}',
    "without spaces": '{"model":"opus","env":{"A":"1"}}\n',
    "tabs": '{\n\t"model": "opus",\n\t"env": {\n\t\t"A": "1"\n\t}\n}\n',
    "four spaces": '{\n    "model": "opus",\n    "env": {\n        "A": "1"\n    }\n}\n',
    "Windows line ends": '{\r\n  "model": "opus",\r\n  "theme": "dark"\r\n}\r\n',
    "byte order mark": '\ufeff{\n  "model": "opus"\n}\n',
    "trailing comma": '{\n  "model": "opus",\n}\n',
    "trailing commas in all": '{\n  "permissions": {\n    "allow": ["Bash(ls:*)",],\n  },\n}\n',
    "line comments": '// mine\n{\n  // the model\n  "model": "opus" // fast\n  // the end\n}\n// behind\n',
    "block comments": '/* mine */ {\n  /* a */ "model" /* b */ : /* c */ "opus" /* d */\n  /* e */\n}\n',
    "comment behind the last comma": '{\n  "model": "opus", // fast\n}\n',
    "only a comment": "{\n  // nothing yet\n}\n",
    "only a block comment": "{ /* nothing yet */ }\n",
    "commas and slashes in strings": '{\n  "a": "// no, /* no */ {}[],",\n  "b": "\\"\\\\"\n}\n',
    "unknown keys": '{\n  "fromTheFuture": {"x": [1, 2.5e3, null, true]},\n  "$schema": "https://a/b"\n}\n',
    "odd white space": '{"a"\n:\n1\n,\n\n"b":2\t}\n\n\n',
    "no ASCII": '{\n  "name": "Müller 漢字 🙂",\n  "n": "\\u00fc"\n}\n',
    "hooks, empty": '{\n  "hooks": {}\n}\n',
    "hooks, a comment in them": '{\n  "hooks": {\n    // mine\n  },\n  "model": "opus"\n}\n',
    "an event without hooks": '{\n  "hooks": {\n    "Stop": [],\n    "SessionStart": []\n  }\n}\n',
    "own hooks": '{\n  "hooks": {\n    "Stop": [{"hooks": [' + OWN_HOOK + "]}]\n  }\n}\n",
    "own hooks on one line": '{"hooks": {"Stop": [{"hooks": [' + OWN_HOOK + "]}]}}\n",
    "own hooks in all events": (
        "{\n"
        '  "hooks": {\n'
        + ",\n".join(
            f'    "{event}": [\n      {{\n        "matcher": "*",\n        "hooks": [{OWN_HOOK}]\n'
            "      }\n    ]"
            for event in ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "PreToolUse")
        )
        + "\n  }\n}\n"
    ),
    "own hooks, commas and comments": (
        '{\n  "hooks": {\n    "Stop": [ // at the end\n      {\n        "hooks": [\n'
        f"          {OWN_HOOK}, // mine\n        ],\n      }}, // the group\n    ], // the event\n  }},\n}}\n"
    ),
    "own status line": '{\n  "statusLine": {"type": "command", "command": "~/line.sh", "padding": 0}\n}\n',
    "hooks twice": '{\n  "hooks": {"Stop": []},\n  "model": "opus",\n  "hooks": {}\n}\n',
    "deep": '{"a": ' + '{"b": [' * 20 + "1" + "]}" * 20 + "}\n",
    "disableAllHooks": '{\n  "disableAllHooks": true,\n  "hooks": {}\n}\n',
}

IGNORED = (
    "trailing commas in all",
    "line comments",
    "block comments",
    "comment behind the last comma",
    "only a comment",
    "only a block comment",
    "hooks, a comment in them",
    "own hooks, commas and comments",
)
"""Those of `ODD` that Claude Code ignores after compactd's hooks were added. A file with only one trailing
comma, the last one, becomes strict JSON, because the hooks are added after that comma."""

BROKEN: dict[str, str] = {
    "a list": "[]\n",
    "a text": '"settings"\n',
    "cut off": '{\n  "model": "op',
    "cut off in a comment": '{\n  "model": 1 /* ',
    "no comma": '{\n  "a": 1\n  "b": 2\n}\n',
    "two commas": '{\n  "a": 1,,\n}\n',
    "no quotes": "{\n  model: 1\n}\n",
    "single quotes": "{'model': 1}\n",
    "something behind": "{} {}\n",
    "hooks is a list": '{"hooks": []}\n',
    "an event is an object": '{"hooks": {"SessionStart": {}}}\n',
    "too deep": "{" + '"a":{' * 5_000 + "}" * 5_001,
}
