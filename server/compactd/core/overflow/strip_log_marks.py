"""Remove what a logger or an interpreter prints around the report of one failure.

`2026-01-02 10:00:00 - srv - ERROR - <sentence>`, or a traceback around `<sentence>`, is a provider's sentence
in a wrapper. Several log lines, or a line whose level is below error, are a log that someone quotes; they are
left unchanged.

Stack traces: tracebacks of Python (also chained, of an exception group, of a notebook) and those of Node,
Java, .NET, Go, Rust, Ruby, PHP, Elixir and Dart are read. The name of a service may precede each line. Any
other text before or between the lines means that someone is describing the error; then nothing is removed.
"""

from __future__ import annotations

import re
from functools import cache

TRACE_CHARS = 6000
"""How many characters are examined."""
LINE = 300
"""A text of one line counts as Ruby's form of an error only if it names the place in the source (`file.rb:`)
within this many characters."""
MAX_OTHER_LINES = 4
"""A text with more lines than this outside its stack frames, the error's message included, is not read as a
stack trace."""
TRACE_SERVICE = (
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
    """Return the compiled patterns (`TRACE_SERVICE`, `FRAME`, `THROWN`). They are compiled at the first
    call, because that takes milliseconds."""
    return (
        re.compile(TRACE_SERVICE),
        re.compile(FRAME, re.VERBOSE),
        re.compile(THROWN, re.VERBOSE | re.DOTALL),
    )


def thrown_message(text: str) -> str | None:
    """Return the message of the error whose stack trace `text` is. Return None if `text` is not a stack
    trace, or has other text before the trace or more than `MAX_OTHER_LINES` lines outside its frames.
    O(characters examined)."""
    if "\n" not in text:
        return _ruby_message(text) if ".rb:" in text[:LINE] else None
    service, frame, error = _patterns()
    lines = [service.sub("", line, count=1) for line in text[:TRACE_CHARS].split("\n") if line.strip()]
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
    if found is None or not frames or len(said) > MAX_OTHER_LINES:
        return None
    return re.sub(TRAILER, "", found)


def _ruby_message(line: str) -> str | None:
    """Return the message in Ruby's one-line form of an error, which has no stack trace: `file.rb:14:in
    `name': message (Class)`. None if the line has another form."""
    found = _patterns()[2].match(line.lstrip())
    if found is None or re.search(TRAILER, line) is None:
        return None
    return re.sub(TRAILER, "", str(found.group("said")))


READ = 4000
"""How many characters are examined."""
MARKS = 14
"""The maximum number of marks that a logger puts before a sentence. A mark is one field of a log line,
such as the time, process, level, module or line."""

LEVEL = (
    r"[\[(<]?(?:ERROR|WARN(?:ING)?|FATAL|CRITICAL|SEVERE|EXCEPTION)[\])>]?(?=[\s:|\-\[])"
    r"|[\[(<](?i:error|warn(?:ing)?|fatal|critical)[\])>](?=[\s:|\-\[])"
    r"|(?i:error|warn(?:ing)?|fatal|critical|exception)(?=:\s|\s{0,3}\|)"
)
"""Matches a log level of a warning or worse."""
TIME = (
    r"(?:\[?\(?\d{2,4}[-/.]\d\d[-/.]\d\d(?:[T ,]{1,2}|(?=[\]\s]))|\d\d-\d\d )?"
    r"\[?\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d| UTC)?(?:\s[AP]M)?\)?\]?"
)
"""Matches the time of a log line, with or without the date."""
MARK = (
    r"\s{0,8}(?:"
    rf"(?P<time>{TIME}|\d\d-\d\d\s\d\d:\d\d:\d\d\.\d{{3}})"
    r"|(?P<date>\d{4}-\d\d-\d\d(?=\s)|[A-Z][a-z]{2}\s{1,2}\d{1,2}(?=\s\d\d:)|[EWF]\d{4}(?=\s))"
    rf"|(?P<level>{LEVEL})"
    r"|(?P<bracket>\[[^\]\n]{0,60}(?i:error)[^\]\n]{0,20}\])"
    r"|(?P<place>\[?[\w./-]{1,80}\.(?:py|cc|cpp|rs|go|ts|js):\d{1,6}\]:?(?=\s))"
    r"|\[[^\]\n]{1,120}\]|\(\w{1,30}[ ]pid=\d{1,9}\)"
    r"|[\w.-]{1,60}\s{1,4}\|(?=\s)|[\w./<>-]{1,80}:[\w.<>-]{1,60}(?::\d{1,6})?(?=\s[-|]|:\s|\s-)"
    r"|[\w./-]{1,80}\.\w{1,4}:\d{1,6}\]?:?|[\w.-]{2,60}\[\d{1,9}\]:|srv\s{1,4}\w{2,30}:"
    r"|\d{2,6}\s{1,6}\d{2,6}\s[EWF]\s[\w.$-]{1,60}\s?:(?=\s)"
    r"|[\w.]{3,80}(?=\s-\s)|\d{1,9}(?=\s[\w.]{1,40}[:.]\w{1,9}[:\]])|[-–—|•:→⎿❌✗✘×!]{1,3}(?=\s)"
    r")"
)
"""Matches one mark of a logger at the beginning of a line."""
LOW_LOG_LEVELS = r"(?:INFO|DEBUG|TRACE|info|debug|trace|NOTICE)\b"
"""Matches a log level below a warning."""
STAMPED = (
    rf"(?m)^\W{{0,3}}(?:[A-Z][a-z]{{2}}\s{{1,2}}\d{{1,2}}\s|[\w.-]{{1,24}}\s{{1,4}}\|?\s?)?"
    rf"(?:{TIME}|(?:INFO|DEBUG|TRACE|WARN|ERROR)[ :\]])"
)
"""Matches the beginning of a log line: a time or a level."""

FRAMES = (
    r"(?m)(?:^|\\n)[ \t│|]{0,12}(?:"
    r"at\s(?:async\s)?[\w$.<>\[\]#`/@:\\ -]{1,200}(?:\(.*)?"
    r"|File\s\"[^\"\n]{1,300}\",\sline\s\d{1,7}.*(?:\n[ \t]{3,80}\S.*){0,2}"
    r"|thread\s'[^'\n]{1,60}'\spanicked\sat\s[^\n]{1,200}|note:\srun\swith\s[^\n]{1,200}"
    r"|\[?(?:Previous|The above|During handling|Caused by the)[^\n]{0,200}"
    r"|(?:Traceback|Stack trace|Stacktrace|stack backtrace|Call stack|--- End of)\b.{0,160}"
    r"|[ \t]{2,80}[\^~]{2,}[ \t]*|\d{1,3}:\s+0x[0-9a-f]{4,}.*|\d{1,3}\s+0x[0-9a-f]{4,}.*"
    r")[ \t]*(?=\\n|$)"
)
"""Matches the lines of a stack trace: `at …` of Node, Java and .NET; `File "…"` of Python, with its source
line."""
PATHS = r"(?<![\w:/])(?:[A-Za-z]:)?(?:[/\\][\w.@~+-]{1,80}){2,20}(?::\d{1,7}){0,2}"
"""Matches file paths. Their words say nothing about an error."""


ACCESS = (
    r"(?m)^[ \t]{0,8}(?:INFO:?\s{1,9})?(?:"
    r"[\d.:]{7,50} - - \[[^\]\n]{8,40}\] \"[A-Z]{3,7} /[^\"\n]{0,120}\" \d{3}\b[^\n]{0,40}"
    r"|\[GIN\][^\n]{10,90}\|\s{0,3}(?:4\d\d|500|503)\s[^\n]{0,160}"
    r"|<?\s?HTTP/[\d.]{1,3}\s(?:4\d\d|500|503)\b[^\n]{0,60}"
    r"|[\d.:\[\]a-f-]{7,50}\s-\s[^\n]{0,80}\"(?:POST|PUT)\s/[^\"\n]{1,120}\"\s(?:4\d\d|500|503)\b[^\n]{0,60}"
    r")$\n?"
)
"""Matches a line of a server's access log (uvicorn's, gin's) that records a failed request."""
CRASH = (
    r"(?m)^(?:terminate called after throwing an instance of '[\w:<> ]{1,80}'\s{0,4}what\(\):"
    r"|(?:fatal error: |panic: |uncaught exception: |unhandled exception[:.]? )(?:runtime error: )?"
    r"|Exception has occurred: \w{1,60}[^\S\n]{0,9}(?:\([^()\n]{0,120}\))?\s"
    r"|Traceback \(most recent call last\):?|Unhandled rejection:?)\s{0,4}"
)
"""Matches what a runtime prints before the message of an uncaught error."""
SWIFT = r": file [\w./-]{1,200}\.swift, line \d{1,7}"
"""Matches the place in the source that Swift prints after a message."""
PANIC = (
    r"thread '[^'\n]{1,60}'(?: \(\d{1,9}\))? panicked at (?:'(?=\w)|[\w./\\@-]{1,160}(?::\d{1,7}){1,2}:\s)"
)
"""Matches what Rust prints before a panic message: the thread and the place in the source."""
UNWRAPPED = r"(?m)^called `(?:Result|Option)::\w{3,20}\(\)` on an? `\w{2,6}` value: "
"""Matches what Rust prints before the error of a failed `unwrap()`."""
NATIVE = (
    r"(?m)^\s{0,4}\d{1,3}\s{1,9}(?:0x[0-9a-f]{4,16}\s)?[^\n]{0,200}"
    r"(?:0x[0-9a-f]{3,16}|\+ \d{1,6})\]?\)?[ \t]{0,4}$\n?"
)
"""Matches a line of a native stack trace."""

MARKED = 90
"""A service's name, including the sign after it, ends within this many characters of a line's beginning."""
SERVICE = (
    r"\s{0,8}(?:\[[A-Za-z][\w./-]{1,60}\]\s{0,4}[|:]|[A-Za-z][\w.-]{1,60}\s{0,12}\|)(?=\s)"
    r"(?=[^\n]{0,20}\b(?:\w{1,40}\.){0,6}\w{0,60}(?:Error|Exception)\b:)"
)
"""Matches the name of a service before an exception, as docker compose prints it."""
RAISED = (
    r"(?:[ \t]{0,40}(?:File \"[^\n]{1,300}|[\w.]{1,60} ?= ?[^\n]{1,200}|return [^\n]{1,200})\n){0,6}"
    r"[ \t]{0,40}raise (?:\w{1,40}\.){0,4}(?P<name>\w{1,60})\([^\n]{0,300}\n"
    r"(?:[ \t]{1,80}[^\n]{0,300}\n|\)\n){0,6}\s{0,8}"
    r"(?=(?:\w{1,40}\.){0,6}(?:(?P=name)|\w{1,50}(?:Error|Exception)): )"
)
"""Matches a traceback whose beginning is missing: source lines, then the `raise` statement."""

KEYED = r"\b(?P<key>error_message|message|msg|error|err|detail)=\"(?P<said>(?:[^\"\\\n]|\\.){8,600})\""
"""Matches a `key="text"` pair of a log record whose text is a message."""
CAUSES = ("error_message", "err", "error", "detail")
"""Keys of a log record that contain the error that the program caught. The other keys in `KEYED` contain
the program's own words."""
MEASURED = (
    r"(?<=\s)(?:n_?)?(?:\w{1,20}_)?(?:tokens|prompt|input|limit|ctx|context|max|window|len|length|size)"
    r"(?:_\w{1,20})?=\d{2,9}(?=\s|$)"
)
"""Matches a measurement in a log record: `prompt=2782`."""
PAIRS = r"(?:^|\s)\w{1,30}=[^\s]"
"""Matches the beginning of a `key=value` pair in a log record (logfmt, Go's slog, ik_llama.cpp)."""


def without_service(text: str) -> str:
    """Return `text` without the name of a service at the beginning of each line; `text` itself unless all
    lines have the same name.

    Call it only for a server's answer. There the name is a container's, as docker compose prints it, and not
    a sign of a quotation. O(characters examined).
    """
    if "|" not in text[:MARKED] and "]" not in text[:MARKED]:
        return text
    found = re.match(SERVICE, text)
    if found is None:
        return text
    lines = text[:READ].split("\n")
    name = found.group().strip()
    if not all(line.lstrip().startswith(name) for line in lines[:-1] if line.strip()):
        return text
    return "\n".join(line.lstrip().removeprefix(name) for line in lines) + text[READ:]


def bare(prose: str) -> str:
    """Return `prose` without a logger's marks before it and without the lines of stack traces.
    O(characters)."""
    said = thrown_message(prose)
    if said is not None:
        return said
    text = prose[:READ]
    crashed = "panicked at" in text
    if ".swift" in text:
        text = re.sub(SWIFT, "", text)
    if "POST" in text or "PUT" in text or "HTTP/" in text:
        text = re.sub(ACCESS, "", text)
    if crashed:
        text = re.sub(UNWRAPPED, "", re.sub(PANIC, "", text))
    if "xcept" in text or "erminate" in text or "panic" in text or "nhandled" in text or "fatal" in text:
        text = re.sub(CRASH, "", text)
    if "0x" in text:
        text = re.sub(NATIVE, "", text)
    if (
        "  at " in text
        or "\tat " in text
        or crashed
        or 'File "' in text
        or "Traceback" in text
        or "0x" in text
    ):
        text = re.sub(FRAMES, "", text).strip("\n")
    if '="' in text and "\n" not in text.strip() and len(re.findall(PAIRS, text)) > 1:
        told = {found.group("key"): found.group("said") for found in re.finditer(KEYED, text)}
        if told and not re.search(r"(?i)\b(?:level|lvl)=\"?(?:info|debug|trace)", text):
            said = next((told[key] for key in CAUSES if key in told), next(iter(told.values())))
            return " ; ".join([said, *re.findall(MEASURED, text)])
    if "raise " in text[:READ]:
        raised = re.match(RAISED, text)
        text = text if raised is None else text[raised.end() :]
    first = text.lstrip()
    if first[:1].isalpha() and "ERROR" not in first[:8] and " | " not in first[:60] and ":" not in first[:90]:
        return text
    return _without_log_marks(text)


def _without_log_marks(text: str) -> str:
    """Return `text` without the marks of a logger at its beginning, if it is a single log line; otherwise
    `text`."""
    at, stamped, mark = 0, False, re.compile(MARK)
    while text[at : at + 1] in ("\n", " ", "\t"):
        at += 1
    start = at
    for _ in range(MARKS):
        found = mark.match(text, at)
        if found is None:
            break
        stamped = stamped or found.lastgroup is not None
        at = found.end()
    rest = text[at:].lstrip(" \t:-|")
    if not stamped or at == start or not rest or re.match(LOW_LOG_LEVELS, rest) is not None:
        return text
    if sum(1 for _ in re.finditer(STAMPED, rest)):
        return text
    return rest
