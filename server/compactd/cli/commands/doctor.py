"""`compactd doctor FILE`: finds what is wrong with a session file; `--repair OUT` writes a repaired copy.

`--where` lists the places on this machine where compactd keeps a given text.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from compactd.cli.commands.convert import convert
from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.exit_codes import DONE, FAILED, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.load_file import SUPPORTED_FILES_HINT, check_path, parse_file, read_bytes
from compactd.cli.framework.options import FORCE
from compactd.cli.framework.output import check_writable, refuse_to_overwrite, write_atomically
from compactd.cli.framework.page import Page, plural
from compactd.formats.files.diagnosis import Diagnosis, Finding, diagnose
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.session_formats import WRITABLE, title_of
from compactd.formats.files.write import neutral_document, write
from compactd.storage.journal_records import scan

ABOUT = f"""\
Finds problems in a session file: incomplete, damaged and repeated lines, tool results
without calls and calls without results, wrong roles, and duplicated summaries. Prints
the place of each. `--repair OUT` writes a copy without them, in the same format; FILE
is never changed. The exit code is 1 if there are problems, otherwise 0. Without FILE,
or with --trust, it lists the folders whose .compactd.toml you trusted, and which of
those files have changed since.

`--repair-hooks` finds hooks and status lines in the settings of Claude Code, Codex and
Gemini CLI whose program no longer exists, and writes the path of this compactd there.

`--where` reads a text from standard input, never from the command line, and lists
every file, session and message that contains it: journals, search index, hook data,
snapshots, and the exports and transcripts that compactd knows of; and the rows of the
database, if COMPACTD_STORE names one. It never prints the text itself.

{SUPPORTED_FILES_HINT}
"""

_MAX_FINDINGS = 100
"""The most findings that are printed; `--json` lists all."""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    file: str | None
    output: str | None
    force: bool
    hooks: bool
    trust: bool
    authors: bool
    where: bool = False
    repair_hooks: bool = False


def run(options: Options, page: Page) -> int:
    """Examine the file, print the findings, and write a repaired copy if asked."""
    if options.repair_hooks:
        from compactd.cli.commands.doctor_hooks import repair_hooks

        return repair_hooks(page)
    if options.hooks:
        from compactd.cli.commands.hook import report

        return report(page)
    if options.authors:
        from compactd.cli.commands.doctor_authors import report as report_authors

        return report_authors(page, options.file)
    if options.where:
        from compactd.cli.commands.doctor_where import report as places

        if options.file is not None or options.output is not None:
            hint = "`compactd doctor --where < FILE`, or type it and end with Ctrl-D."
            raise CommandError("--where reads the text from standard input.", hint=hint, exit_code=USAGE)
        return places(page)
    if options.trust or (options.file is None and options.output is None):
        from compactd.cli.commands.trust import list_folders

        code = list_folders(page)
        if not options.trust and not page.is_json:
            page.line("`compactd doctor FILE` examines a session file, `compactd doctor --hooks` the hooks")
        return code
    if options.file is None:
        raise CommandError("a session file is missing.", hint="`compactd doctor FILE`.", exit_code=USAGE)
    path = check_path(options.file)
    target = None if options.output is None else check_writable(options.output, path, force=True)
    data = read_bytes(path)
    file = parse_file(path, data)
    found = diagnose(data, file)
    findings = (*_of_journal(file, data), *found.findings)
    lost: tuple[str, ...] = ()
    if target is not None and findings:
        refuse_to_overwrite(target, force=options.force)
        repaired, lost = _repair(data, file, found)
        write_atomically(target, repaired)
    if page.is_json:
        page.json(
            {
                "file": str(path),
                "format": file.format,
                "messages": len(file.messages),
                "compactions": file.compactions,
                "findings": findings,
                "repaired": str(target) if target is not None and findings else None,
                "lost": lost,
            }
        )
    else:
        _draw(page, path.name, file, findings)
        if target is not None and findings:
            page.line(f"wrote {target}: {plural(len(found.repaired.messages), 'message')}")
            for what in lost:
                page.line(f"  {what}", "due")
        elif findings:
            page.line("`--repair OUT` writes a copy without these problems")
    if target is None:
        return FAILED if findings else DONE
    return DONE if findings else NOTHING_TO_DO


def _of_journal(file: SessionFile, data: bytes) -> tuple[Finding, ...]:
    """Return the damage of a compactd journal, as `session/start` would report it."""
    if file.format != "compactd":
        return ()
    damage = scan(data).damage
    if damage is None:
        return ()
    told = f"the line is not a complete record; {plural(len(damage.after), 'record')} after it can be read"
    return (Finding(kind="damaged journal", text=told, line=damage.line),)


def _repair(data: bytes, file: SessionFile, found: Diagnosis) -> tuple[bytes, tuple[str, ...]]:
    """Return (the repaired copy, warnings about what its format cannot represent). Raise `CommandError` if
    the session cannot be repaired.
    """
    if file.format == "compactd":
        from compactd.cli.commands.salvage import salvage

        saved = salvage(data)
        if saved is None:
            raise CommandError("the first record of the journal is lost, so the session cannot be repaired.")
        return saved, ()
    if file.format in WRITABLE:
        written = write(found.repaired, file.format)
        return written.data, written.warnings
    made = convert(neutral_document(found.repaired), replace(file, format="neutral"), file.format)
    return made.data, made.warnings


def _draw(page: Page, name: str, file: SessionFile, findings: tuple[Finding, ...]) -> None:
    count = plural(len(file.messages), "message")
    page.line(f"{name} · {title_of(file.format)} · {count}")
    if not findings:
        page.line("no problems were found")
        return
    page.line(plural(len(findings), "finding"), "due")
    for finding in findings[:_MAX_FINDINGS]:
        place = f"message {finding.message}" if finding.message is not None else ""
        place = f"line {finding.line}" if finding.line is not None else place
        page.line(f"  {finding.kind:20} {place:14} {finding.text}")
    if len(findings) > _MAX_FINDINGS:
        page.line(f"  … {len(findings) - _MAX_FINDINGS:,} more; --json lists all")


COMMAND = Command(
    "doctor",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("file", "the session file; - is standard input", is_file=True, required=False),
        Option("--repair", "write a repaired copy to this file", field="output", metavar="OUT", is_file=True),
        FORCE,
        Flag("--hooks", "show what the installed hooks did, and what failed"),
        Flag("--repair-hooks", "repair installed hooks whose program is gone"),
        Flag("--trust", "list the trusted folders, and those that are no longer trusted"),
        Flag("--authors", "show who wrote the text in the role user, in FILE or in all sessions"),
        Flag("--where", "list everything that contains the text on standard input"),
    ),
    examples=(
        ("compactd doctor session.jsonl", "list the problems; exit code 1 if there are any"),
        (
            "compactd doctor session.jsonl --repair mended.jsonl",
            "list the problems and write a repaired copy",
        ),
        ("compactd doctor --authors", "find text that earlier versions wrongly attributed to you"),
        ("compactd doctor --where < secret.txt", "list the files that contain it; exit code 1 if any does"),
    ),
    is_paged=True,
)
