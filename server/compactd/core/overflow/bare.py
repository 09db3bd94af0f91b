"""Remove what a logger or an interpreter prints around the report of one failure.

`2026-01-02 10:00:00 - srv - ERROR - <sentence>`, or a traceback around `<sentence>`, is a provider's sentence
in a wrapper. Several log lines, or a line whose level is below error, are a log that someone quotes; they are
left unchanged.
"""

from __future__ import annotations

import re

from compactd.core.overflow.stack_traces import thrown

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
TOLD = r"(?:INFO|DEBUG|TRACE|info|debug|trace|NOTICE)\b"
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


def unserviced(text: str) -> str:
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
    said = thrown(prose)
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
    return _unlogged(text)


def _unlogged(text: str) -> str:
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
    if not stamped or at == start or not rest or re.match(TOLD, rest) is not None:
        return text
    if sum(1 for _ in re.finditer(STAMPED, rest)):
        return text
    return rest
