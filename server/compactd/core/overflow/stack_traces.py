"""Extract the message of an uncaught error from the stack trace that a runtime printed around it.

It reads tracebacks of Python (also chained, of an exception group, of a notebook) and stack traces of Node,
Java, .NET, Go, Rust, Ruby, PHP, Elixir and Dart. The name of a service may precede each line. Any other text
before or between the lines of the stack trace means that someone is describing the error; then nothing is
extracted.
"""

from __future__ import annotations

import re
from functools import cache

READ = 6000
"""How many characters are examined."""
LINE = 300
"""Ruby's one-line form names the place in the source within this many characters."""
SAID = 4
"""The maximum number of lines that are not part of the stack trace."""
SERVICE = (
    r"^(?:(?:\d{1,3}\|)?[A-Za-z][\w.@-]{0,40}\s{0,12}\|"
    r"(?:\s[\d-]{10}[T ][\d:.]{5,15}\s?[+Z\d:]{0,7}(?=\s))?(?:\s|$)"
    r"|[A-Z][a-z]{2}\s{1,2}\d{1,2}\s\d\d:\d\d:\d\d\s[\w.-]{1,40}\s[\w./@-]{1,40}(?:\[\d{1,9}\])?:(?:\s|$)"
    r"|\[rank\d{1,4}\]:(?:\s|$)|\(\w{1,30} pid=\d{1,9}\)(?:\s|$))"
)
"""Matches the name of a service before a line, as pm2, docker, journald or a worker prints it."""
FRAME = r"""\s{0,60}(?:[|+]\s{0,8}){0,3}(?:
    File\s"[^"\n]{1,300}",\sline\s\d | at\s(?:async\s|new\s)?[^\s(]{1,200}(?:\s?\(|\s\[|:\d|\s{0,3}$)
    | from\s\S{1,200}:\d+:in\s | \#\d{1,3}\s{1,8}\S
    | Traceback\s\(most | Exception\sGroup\sTraceback | \w{0,60}Error\s{8,60}Traceback | ExceptionGroup:
    | Stack\s?trace: | Stack\sbacktrace: | stack\sbacktrace: | goroutine\s\d+\s\[ | \.\.\.\s\d{1,4}\smore
    | \d{1,4}:\s{1,6}(?:0x[0-9a-f]{4,}\s-\s)?[<\w]\S{0,200}(?:::\S{0,200})+\s{0,4}$
    | \S{1,200}\(.{0,200}\)\s{0,4}$ | \S{1,200}\.\w{1,4}:\d{1,7}(?:\s\+0x[0-9a-f]+)?\s{0,4}$
    | \(\w{1,40}\s[\d.]{1,16}\)\s\S | thrown\sin\s | note:\srun\swith | exit\sstatus\s\d
    | (?:During\shandling|The\sabove\sexception) | Aborted\s\(core | Cell\sIn\[ | -{2,8}>\s | \d{1,5}\s{2,8}\S
    | [╭╰│┃┌└├┏┗❱] | terminate\scalled\safter
    | -{8,} | [-+=~^]{4,} | Output\sgenerated\sin\s | ray::
    | [\d.:]{7,50}\s-\s-?\s?\[.{8,40}\]\s"[A-Z]{3,7}\s
    )"""
"""Matches a line of a stack trace that is not part of the error's message."""
THROWN = r"""\s{0,8}(?:[|+]\s{0,8}){0,3}(?:\[\w{1,12}\]:\s)?(?:
    Caused\sby:\s(?P<cause>(?:[\w$]{1,60}\.){0,8}\w{1,60}:\s)?
    | (?:Unhandled\sexception\.\s|Uncaught\s(?:\(in\spromise\)\s)?|PHP\sFatal\serror:\s{1,3}Uncaught\s
        |Exception\sin\sthread\s"[^"\n]{1,60}"\s|panic:\s(?:runtime\serror:\s)?|\*\*\s\()?
      (?:[\w$]{1,60}[.:\\]{1,2}){0,8}(?:[A-Z][\w$]{0,60})?(?:Error|Exception|Fault)(?::|\)|\):)\s
    | (?:panic|fatal\serror|Fatal\serror|what\(\)):\s{1,3}
    | [45]\d\d\s(?=[A-Z])
    | \S{1,160}\.rb:\d{1,6}:in\s\S{1,100}:\s
    )(?P<said>\S.*)"""
"""Matches the first line of the error's message. Group `said` is the message in that line."""
TRAILER = (
    r"(?:\s\((?:\w{1,40}::){0,4}\w{1,40}(?:Error|Exception)\)"
    r"|\sin\s(?:[A-Z]:)?[\w./\\-]{2,200}:\d{1,6})\s{0,4}$"
)
"""Matches what Ruby and PHP append to the message."""


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return the compiled patterns (`SERVICE`, `FRAME`, `THROWN`). They are compiled at the first call,
    because that takes milliseconds."""
    return re.compile(SERVICE), re.compile(FRAME, re.VERBOSE), re.compile(THROWN, re.VERBOSE | re.DOTALL)


def thrown(text: str) -> str | None:
    """Return the message of the error whose stack trace `text` is; None if it is not a stack trace, or
    contains other text. O(characters examined)."""
    if "\n" not in text:
        return _placed(text) if ".rb:" in text[:LINE] else None
    service, frame, error = _patterns()
    lines = [service.sub("", line, count=1) for line in text[:READ].split("\n") if line.strip()]
    if not lines or (frame.match(lines[0]) is None and error.match(lines[0]) is None):
        return None
    said: list[str] = []
    frames, inside, saying = 0, False, False
    found: str | None = None
    for line in lines:
        message = error.match(line)
        if message is None and frame.match(line) is not None:
            frames, inside, saying = frames + 1, True, False
        elif message is not None:
            inside, saying = False, True
            said.append(found := str(message.group("said")))
        elif saying and found is not None:
            found = f"{found}\n{line}"
            said.append(line)
        elif inside and line[:2] in ("  ", "\t", "\t\t"):
            continue
        else:
            inside = False
            said.append(line)
    if found is None or not frames or len(said) > SAID:
        return None
    return re.sub(TRAILER, "", found)


def _placed(line: str) -> str | None:
    """Return the message in Ruby's one-line form of an error, which has no stack trace: `file.rb:14:in
    `name': message (Class)`. None if the line has another form."""
    found = _patterns()[2].match(line.lstrip())
    if found is None or re.search(TRAILER, line) is None:
        return None
    return re.sub(TRAILER, "", str(found.group("said")))
