"""A report of one failure without what a logger and an interpreter put around it.

`2026-01-02 10:00:00 - srv - ERROR - <sentence>` and a traceback round `<sentence>` are one provider's word
with its wrapper. Several lines of a log, or a line below error level, are a log that somebody quotes.
"""

from __future__ import annotations

import re

from compactd.core.overflow.stack_traces import thrown

READ = 4000
"""Characters that are looked at."""
MARKS = 14
"""Most marks of a logger before a sentence: docker's, the time, process, level, module, line."""

LEVEL = (
    r"[\[(<]?(?:ERROR|WARN(?:ING)?|FATAL|CRITICAL|SEVERE|EXCEPTION)[\])>]?(?=[\s:|\-\[])"
    r"|[\[(<](?i:error|warn(?:ing)?|fatal|critical)[\])>](?=[\s:|\-\[])"
    r"|(?i:error|warn(?:ing)?|fatal|critical|exception)(?=:\s|\s{0,3}\|)"
)
TIME = (
    r"(?:\[?\(?\d{2,4}[-/.]\d\d[-/.]\d\d(?:[T ,]{1,2}|(?=[\]\s]))|\d\d-\d\d )?"
    r"\[?\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d| UTC)?(?:\s[AP]M)?\)?\]?"
)
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
"""One mark of a logger at the beginning of a line."""
TOLD = r"(?:INFO|DEBUG|TRACE|info|debug|trace|NOTICE)\b"
STAMPED = (
    rf"(?m)^\W{{0,3}}(?:[A-Z][a-z]{{2}}\s{{1,2}}\d{{1,2}}\s|[\w.-]{{1,24}}\s{{1,4}}\|?\s?)?"
    rf"(?:{TIME}|(?:INFO|DEBUG|TRACE|WARN|ERROR)[ :\]])"
)

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
"""Frames of a stack: Node's and Java's and .NET's `at …`, Python's `File "…"` with its source."""
PATHS = r"(?<![\w:/])(?:[A-Za-z]:)?(?:[/\\][\w.@~+-]{1,80}){2,20}(?::\d{1,7}){0,2}"
"""Names of files, whose words say nothing."""


ACCESS = (
    r"(?m)^[ \t]{0,8}(?:INFO:?\s{1,9})?(?:"
    r"[\d.:]{7,50} - - \[[^\]\n]{8,40}\] \"[A-Z]{3,7} /[^\"\n]{0,120}\" \d{3}\b[^\n]{0,40}"
    r"|\[GIN\][^\n]{10,90}\|\s{0,3}(?:4\d\d|500|503)\s[^\n]{0,160}"
    r"|<?\s?HTTP/[\d.]{1,3}\s(?:4\d\d|500|503)\b[^\n]{0,60}"
    r"|[\d.:\[\]a-f-]{7,50}\s-\s[^\n]{0,80}\"(?:POST|PUT)\s/[^\"\n]{1,120}\"\s(?:4\d\d|500|503)\b[^\n]{0,60}"
    r")$\n?"
)
"""A line of a server's access log that says that it refused: uvicorn's, gin's."""
CRASH = (
    r"(?m)^(?:terminate called after throwing an instance of '[\w:<> ]{1,80}'\s{0,4}what\(\):"
    r"|(?:fatal error: |panic: |uncaught exception: |unhandled exception[:.]? )(?:runtime error: )?"
    r"|Exception has occurred: \w{1,60}[^\S\n]{0,9}(?:\([^()\n]{0,120}\))?\s"
    r"|Traceback \(most recent call last\):?|Unhandled rejection:?)\s{0,4}"
)
"""What a runtime prints before the message of an error that nobody caught."""
SWIFT = r": file [\w./-]{1,200}\.swift, line \d{1,7}"
PANIC = (
    r"thread '[^'\n]{1,60}'(?: \(\d{1,9}\))? panicked at (?:'(?=\w)|[\w./\\@-]{1,160}(?::\d{1,7}){1,2}:\s)"
)
"""Rust's place before a message, on the same line or the next."""
UNWRAPPED = r"(?m)^called `(?:Result|Option)::\w{3,20}\(\)` on an? `\w{2,6}` value: "
NATIVE = (
    r"(?m)^\s{0,4}\d{1,3}\s{1,9}(?:0x[0-9a-f]{4,16}\s)?[^\n]{0,200}"
    r"(?:0x[0-9a-f]{3,16}|\+ \d{1,6})\]?\)?[ \t]{0,4}$\n?"
)
"""A frame of a native stack."""

MARKED = 90
"""Characters from a line's beginning in which the name of a service ends."""
SERVICE = (
    r"\s{0,8}(?:\[[A-Za-z][\w./-]{1,60}\]\s{0,4}[|:]|[A-Za-z][\w.-]{1,60}\s{0,12}\|)(?=\s)"
    r"(?=[^\n]{0,20}\b(?:\w{1,40}\.){0,6}\w{0,60}(?:Error|Exception)\b:)"
)
"""The name of a service, before an exception."""
RAISED = (
    r"(?:[ \t]{0,40}(?:File \"[^\n]{1,300}|[\w.]{1,60} ?= ?[^\n]{1,200}|return [^\n]{1,200})\n){0,6}"
    r"[ \t]{0,40}raise (?:\w{1,40}\.){0,4}(?P<name>\w{1,60})\([^\n]{0,300}\n"
    r"(?:[ \t]{1,80}[^\n]{0,300}\n|\)\n){0,6}\s{0,8}"
    r"(?=(?:\w{1,40}\.){0,6}(?:(?P=name)|\w{1,50}(?:Error|Exception)): )"
)
"""The end of a traceback without its beginning: source, then the exception that it raised."""

KEYED = r"\b(?P<key>error_message|message|msg|error|err|detail)=\"(?P<said>(?:[^\"\\\n]|\\.){8,600})\""
CAUSES = ("error_message", "err", "error", "detail")
"""Of a record's keys, those of what was caught; the others are the program's own words."""
MEASURED = (
    r"(?<=\s)(?:n_?)?(?:\w{1,20}_)?(?:tokens|prompt|input|limit|ctx|context|max|window|len|length|size)"
    r"(?:_\w{1,20})?=\d{2,9}(?=\s|$)"
)
"""What such a record measured: `prompt=2782`."""
PAIRS = r"(?:^|\s)\w{1,30}=[^\s]"
"""`key=value` records of a logger (logfmt, Go's slog, ik_llama.cpp)."""


def unserviced(text: str) -> str:
    """`text` without the name of the one service that stands before each of its lines; else `text`.

    What a server answered is no quotation: there the name is a container's, as docker compose prints it.
    Cost: O(characters looked at).
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
    """`prose` without one logger's marks before it and without frames of a stack. Cost: O(characters)."""
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
    """`text` without the marks of the one line of a log that it is."""
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
