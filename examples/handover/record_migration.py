"""Records examples/handover/migration.jsonl: a coding agent moves a small web service from pydantic to msgspec.

The words of the user, the agent and its sub-agent are written below. The tool results are real: every read,
edit, test run and commit happens in a copy of `examples/handover/service`. It needs pytest, pydantic, msgspec,
starlette and git. `python -m examples.handover.record_migration` records the session again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from examples.stage import Stage, bash, edit, read, write

TARGET = Path(__file__).with_name("migration.jsonl")
SERVICE = Path(__file__).with_name("service")
TESTS = "python -m pytest --tb=short"
DATE = "2026-11-24T10:00:00+01:00"
GIT = {
    "GIT_AUTHOR_NAME": "agent",
    "GIT_AUTHOR_EMAIL": "agent@lend.example",
    "GIT_AUTHOR_DATE": DATE,
    "GIT_COMMITTER_NAME": "agent",
    "GIT_COMMITTER_EMAIL": "agent@lend.example",
    "GIT_COMMITTER_DATE": DATE,
    "GIT_CONFIG_NOSYSTEM": "1",
}
"""Fixed names and dates, so that the commits have the same hashes each time."""

TASKS = (
    "Find every feature of pydantic that the service uses",
    "Replace the models in lend/models.py by msgspec structs",
    "Name every wrong field in a 422 answer (lend/app.py)",
    "Read and write data/loans.json in lend/store.py",
    "Move scripts/report.py off model_dump and give it a test",
    "Remove pydantic from pyproject.toml and README.md",
    "Compare the number of imported modules before and after",
)
"""The agent's plan."""


def expect(s: Stage, words: str) -> None:
    """Checks that the last tool result contains `words`, so that the agent's next words are true."""
    result = str(s.messages[-1]["content"])
    if words not in result:
        raise SystemExit(f"the script no longer fits: not {words!r} in the last result:\n{result}")


def statuses(done: int, now: int | None = None, *more: tuple[str, str]) -> list[tuple[str, str]]:
    """Returns the plan with its first `done` tasks completed and the task at index `now` in progress."""
    rows = []
    for at, task in enumerate(TASKS):
        status = "completed" if at < done else "in_progress" if at == now else "pending"
        rows.append((status, task))
    return [*rows, *more]


def play(s: Stage) -> None:
    """Runs the session."""
    asked(s)
    explored(s)
    gave_up_on_a_bridge(s)
    replaced_models(s)
    named_wrong_fields(s)
    moved_the_store(s)
    reversed_the_rewrite(s)
    raised_the_deposit(s)
    stopped(s)


def asked(s: Stage) -> None:
    """The user says what to do, and sets limits."""
    s.user(
        "Please move the lending service in this folder from pydantic to msgspec. The box in the hall has 512 MB and "
        "needs 9 seconds to start; most of that is imports. The release is on 4 December.\n\n"
        "Rules:\n"
        "- The JSON of the API and of data/loans.json keeps its field names. The kiosk is not updated before January.\n"
        "- tests/test_api.py is the contract: never change it.\n"
        "- No dependency other than starlette, uvicorn and msgspec.\n"
        "- The maximum deposit stays 50 €.\n"
        "- If a stored file cannot be read, stop and ask me first. Don't edit data/loans.json by hand.\n"
        "- Run all tests before each commit. Commit in small steps, but don't push: I push myself."
    )


def explored(s: Stage) -> None:
    """The agent looks at the code, makes a plan and asks a sub-agent."""
    s.say(
        "I'll look at the service first, and at whether its tests pass as it is.",
        bash(
            "git log --oneline; git status --short; ls . lend tests scripts data; wc -l lend/*.py tests/*.py"
        ),
        bash(TESTS),
    )
    s.say(
        "15 tests pass before any change. The models and the store:",
        read("lend/models.py"),
        read("lend/store.py"),
    )
    s.say("The interface, and the contract:", read("lend/app.py"), read("tests/test_api.py"))
    s.plan("This is my plan.", *statuses(0, 0))
    s.delegate(
        "A sub-agent can list the uses of pydantic while I read the tests of the models.",
        "List uses of pydantic",
        "List every feature of pydantic that lend/, scripts/ and tests/ use, with file and line. Say for each whether "
        "msgspec has the same. Change nothing.",
        "I found six features:\n\n"
        '1. Aliases in camelCase (lend/models.py, `to_camel`): msgspec has `rename="camel"`.\n'
        "2. `pattern`, `min_length`, `max_length` on strings: msgspec has them in `Meta`.\n"
        "3. `ge` and `le` on a Decimal (deposit): msgspec's `Meta` refuses these on Decimal. Needs a check in `__post_init__`.\n"
        "4. `model_validator` for the order of the days: `__post_init__`.\n"
        "5. `errors()` with all wrong fields (lend/app.py, `invalid`): msgspec stops at the first wrong field. "
        "tests/test_api.py expects both, so this needs code of its own.\n"
        "6. `model_dump(include=…)` in scripts/report.py: easy to miss, because no test runs that script.\n\n"
        "Not used: computed fields, discriminated unions, settings. I did not look into data/loans.json.",
    )
    s.say(
        "Checking points 3 and 6 myself before I rely on them.",
        read("scripts/report.py"),
        read("tests/test_models.py"),
    )
    s.say(
        "",
        bash(
            "python - <<'EOF'\n"
            "from decimal import Decimal\n"
            "from typing import Annotated\n"
            "import msgspec\n"
            "class Loan(msgspec.Struct):\n"
            "    deposit: Annotated[Decimal, msgspec.Meta(ge=0, le=50)]\n"
            "try:\n"
            '    msgspec.json.decode(b\'{"deposit": "60"}\', type=Loan)\n'
            "except TypeError as error:\n"
            "    print('TypeError:', error)\n"
            "EOF"
        ),
        bash(
            "python -c \"import sys, lend.app; print(len(sys.modules), 'modules;', "
            "sum(name.startswith('pydantic') for name in sys.modules), 'of pydantic')\""
        ),
    )
    s.plan("Both are true. The number of modules is for the comparison at the end.", *statuses(1, 1))


def gave_up_on_a_bridge(s: Stage) -> None:
    """The agent tries to derive the structs from the models, and gives it up."""
    s.say(
        "The smallest change would be a bridge: derive the structs from the pydantic models with `msgspec.defstruct`, so "
        "that the models stay the only place with the fields.",
        write(
            "lend/bridge.py",
            '"""Makes a msgspec struct of a pydantic model."""\n\n'
            "from __future__ import annotations\n\n"
            "import msgspec\n"
            "from pydantic import BaseModel\n\n\n"
            "def struct_of(model: type[BaseModel]) -> type[msgspec.Struct]:\n"
            "    fields = []\n"
            "    for name, field in model.model_fields.items():\n"
            "        if field.is_required():\n"
            "            fields.append((name, field.annotation))\n"
            "        else:\n"
            "            fields.append((name, field.annotation, field.default))\n"
            '    return msgspec.defstruct(model.__name__, fields, rename="camel", kw_only=True)\n',
        ),
        edit(
            "lend/app.py",
            "        wanted = NewLoan.model_validate_json(await request.body())\n",
            "        given = msgspec.json.decode(await request.body(), type=struct_of(NewLoan))\n"
            "        wanted = NewLoan.model_construct(**msgspec.structs.asdict(given))\n",
        ),
        edit(
            "lend/app.py",
            "from lend.models import NewLoan, Return\n",
            "from lend.bridge import struct_of\nfrom lend.models import NewLoan, Return\n",
        ),
        edit("lend/app.py", "from pydantic import", "import msgspec\nfrom pydantic import"),
        bash("python -m pytest --tb=line 2>&1 | tail -14"),
    )
    expect(s, "3 failed, 12 passed")
    s.say(
        "Three fail, and those that pass only do so because the store makes a `Loan` with pydantic later: the struct itself "
        "checks no pattern, no length and no order of the days, since `field.annotation` has none of them. So the wrong "
        "fields come with their Python names (`member_no`). I could copy `field.metadata`, but the validator and the limits "
        "of the Decimal would still be missing, and pydantic would have to stay installed to read the models. I give up "
        "the bridge because it keeps the import that we want to get rid of. Taking it back.",
        bash(
            "rm lend/bridge.py && git checkout lend/app.py && git status --short && python -m pytest 2>&1 | tail -3"
        ),
    )
    expect(s, "15 passed")


def replaced_models(s: Stage) -> None:
    """The agent writes the structs by hand."""
    s.say(
        "Decision: write the structs by hand and check deposit and days in `__post_init__`, because `Meta` has no limits "
        "for Decimal. The tests of the models first: they only need another way to read a loan.",
        write(
            "tests/test_models.py",
            '"""Limits of the fields."""\n\n'
            "from __future__ import annotations\n\n"
            "from decimal import Decimal\n\n"
            "import msgspec\n"
            "import pytest\n\n"
            "from lend.models import NewLoan\n\n"
            'LOAN = {"memberNo": "M-0042", "toolId": "drill-7", "fromDay": "2026-11-02", "dueDay": "2026-11-09"}\n\n\n'
            '@pytest.mark.parametrize("deposit", ["-1", "50.01", "much"])\n'
            "def test_a_deposit_outside_the_limits_is_refused(deposit: str) -> None:\n"
            "    with pytest.raises(msgspec.ValidationError):\n"
            '        msgspec.convert({**LOAN, "deposit": deposit}, NewLoan)\n\n\n'
            "def test_the_largest_deposit_is_accepted() -> None:\n"
            '    assert msgspec.convert({**LOAN, "deposit": "50"}, NewLoan).deposit == Decimal(50)\n\n\n'
            "def test_a_note_has_at_most_200_characters() -> None:\n"
            "    with pytest.raises(msgspec.ValidationError):\n"
            '        msgspec.convert({**LOAN, "note": "x" * 201}, NewLoan)\n',
        ),
        bash("python -m pytest --tb=line tests/test_models.py"),
    )
    expect(s, "1 failed, 4 passed")
    s.say(
        "Red. Only one of them, because the refusals are refused for the wrong reason as long as NewLoan is no struct. Now "
        "the structs.",
        write(
            "lend/models.py",
            '"""Members, tools and loans, as they are on the wire and in the file."""\n\n'
            "from __future__ import annotations\n\n"
            "from datetime import date, datetime\n"
            "from decimal import Decimal\n"
            "from typing import Annotated, Literal\n\n"
            "from msgspec import Meta, Struct\n\n"
            "MAX_DEPOSIT = Decimal(50)\n"
            '"""The largest deposit, in euros."""\n\n'
            'MemberNo = Annotated[str, Meta(pattern=r"^M-\\d{4}$")]\n'
            "ToolId = Annotated[str, Meta(min_length=3, max_length=20)]\n"
            'Condition = Literal["good", "worn", "broken"]\n\n\n'
            'class Model(Struct, rename="camel", kw_only=True):\n'
            '    """Field names are camelCase on the wire. Unknown fields are ignored."""\n\n\n'
            "class NewLoan(Model):\n"
            '    """The body of `POST /loans`."""\n\n'
            "    member_no: MemberNo\n"
            "    tool_id: ToolId\n"
            "    from_day: date\n"
            "    due_day: date\n"
            "    deposit: Decimal = Decimal(0)\n"
            '    note: Annotated[str, Meta(max_length=200)] = ""\n\n'
            "    def __post_init__(self) -> None:\n"
            "        if self.due_day < self.from_day:\n"
            '            raise ValueError("dueDay is before fromDay")\n'
            "        if not 0 <= self.deposit <= MAX_DEPOSIT:\n"
            '            raise ValueError(f"deposit is not between 0 and {MAX_DEPOSIT}")\n\n\n'
            "class Return(Model):\n"
            '    """The body of `POST /loans/{id}/return`."""\n\n'
            "    condition: Condition\n"
            "    returned_at: datetime\n\n\n"
            "class Loan(NewLoan):\n"
            '    """A loan in the file."""\n\n'
            "    loan_id: int\n"
            "    condition: Condition | None = None\n"
            "    returned_at: datetime | None = None\n\n"
            "    @property\n"
            "    def is_open(self) -> bool:\n"
            "        return self.returned_at is None\n",
        ),
        bash("python -m pytest --tb=short tests/test_models.py"),
    )
    expect(s, "Required field 'loan_id' cannot follow optional fields")
    s.say(
        "`rename` is inherited by a struct, `kw_only` is not: each class needs it.",
        bash(
            "sed -i 's/^class NewLoan(Model):/class NewLoan(Model, kw_only=True):/; s/^class Return(Model):/class "
            "Return(Model, kw_only=True):/; s/^class Loan(NewLoan):/class Loan(NewLoan, kw_only=True):/; s/, "
            'rename="camel", kw_only=True/, rename="camel"/\' lend/models.py && grep -n \'^class\' lend/models.py'
        ),
        bash("python -m pytest --tb=short tests/test_models.py"),
    )
    expect(s, "5 passed")
    s.plan(
        "The models are green. The service does not start yet, so I commit after the next two steps together: each "
        "commit must pass all tests.",
        *statuses(2, 2),
    )


def named_wrong_fields(s: Stage) -> None:
    """The agent makes the answers name all wrong fields."""
    s.say(
        "First the plain way in the interface and the store: decode, and answer 422 with the error's text.",
        write(
            "lend/app.py",
            '"""The HTTP interface."""\n\n'
            "from __future__ import annotations\n\n"
            "from pathlib import Path\n\n"
            "import msgspec\n"
            "from starlette.applications import Starlette\n"
            "from starlette.requests import Request\n"
            "from starlette.responses import Response\n"
            "from starlette.routing import Route\n\n"
            "from lend.models import NewLoan, Return\n"
            "from lend.store import Conflict, NotFound, Store\n\n\n"
            "def create_app(path: Path) -> Starlette:\n"
            '    """Return the service for the loans in `path`."""\n'
            "    store = Store(path)\n\n"
            "    async def list_loans(request: Request) -> Response:\n"
            '        return answer(store.loans(only_open=request.query_params.get("open") == "1"))\n\n'
            "    async def lend(request: Request) -> Response:\n"
            "        wanted = msgspec.json.decode(await request.body(), type=NewLoan)\n"
            "        return answer(store.lend(wanted), 201)\n\n"
            "    async def take_back(request: Request) -> Response:\n"
            "        returned = msgspec.json.decode(await request.body(), type=Return)\n"
            '        return answer(store.take_back(request.path_params["loan_id"], returned))\n\n'
            "    return Starlette(\n"
            "        routes=[\n"
            '            Route("/loans", list_loans, methods=["GET"]),\n'
            '            Route("/loans", lend, methods=["POST"]),\n'
            '            Route("/loans/{loan_id:int}/return", take_back, methods=["POST"]),\n'
            "        ],\n"
            "        exception_handlers={\n"
            "            msgspec.DecodeError: invalid,\n"
            "            NotFound: lambda _, error: problem(404, str(error)),\n"
            "            Conflict: lambda _, error: problem(409, str(error)),\n"
            "        },\n"
            "    )\n\n\n"
            "def answer(value: object, status: int = 200) -> Response:\n"
            '    return Response(msgspec.json.encode(value), status, media_type="application/json")\n\n\n'
            "def problem(status: int, message: str) -> Response:\n"
            '    return answer({"error": message}, status)\n\n\n'
            "async def invalid(_: Request, error: Exception) -> Response:\n"
            '    """Answer 422 with each wrong field."""\n'
            '    message, _, field = str(error).partition(" - at `$.")\n'
            '    return answer({"errors": [{"field": field.rstrip("`"), "message": message}]}, 422)\n',
        ),
        edit("lend/store.py", "from pydantic import TypeAdapter\n", "import msgspec\n"),
        edit(
            "lend/store.py",
            "LOANS = TypeAdapter(list[Loan])\n",
            "LOANS = msgspec.json.Decoder(list[Loan])\n",
        ),
        edit("lend/store.py", "LOANS.validate_json(path.read_bytes())", "LOANS.decode(path.read_bytes())"),
        edit("lend/store.py", "**wanted.model_dump())", "**msgspec.structs.asdict(wanted))"),
        edit(
            "lend/store.py",
            "self._loans[at].model_copy(update=returned.model_dump())",
            "msgspec.structs.replace(self._loans[at], **msgspec.structs.asdict(returned))",
        ),
        edit(
            "lend/store.py",
            "LOANS.dump_json(self._loans, by_alias=True, indent=1)",
            "msgspec.json.format(msgspec.json.encode(self._loans), indent=1)",
        ),
        bash(TESTS),
    )
    expect(s, "2 failed, 13 passed")
    s.say(
        "Two fail, as the sub-agent said: msgspec stops at the first wrong field, and it names a missing field in the "
        "text only. I'll put the reading of a body into a file of its own. It decodes to plain values, converts them, and only "
        "if that fails converts field by field to name every wrong one.",
        write(
            "lend/bodies.py",
            '"""Reads a request\'s body, and names every field that is wrong."""\n\n'
            "from __future__ import annotations\n\n"
            "from typing import TypeVar\n\n"
            "import msgspec\n\n"
            'T = TypeVar("T", bound=msgspec.Struct)\n\n\n'
            "class Invalid(Exception):\n"
            '    """A body that cannot be read."""\n\n'
            "    def __init__(self, errors: list[dict[str, str]]) -> None:\n"
            "        super().__init__()\n"
            "        self.errors = errors\n\n\n"
            "def read_body(body: bytes, kind: type[T]) -> T:\n"
            '    """Return the value in `body`. Raises `Invalid`."""\n'
            "    try:\n"
            "        raw = msgspec.json.decode(body)\n"
            "    except msgspec.DecodeError as error:\n"
            '        raise Invalid([{"field": "", "message": str(error)}]) from None\n'
            "    try:\n"
            "        return msgspec.convert(raw, kind)\n"
            "    except msgspec.ValidationError as error:\n"
            '        raise Invalid(wrong_fields(raw, kind) or [{"field": "", "message": str(error)}]) from None\n\n\n'
            "def wrong_fields(raw: object, kind: type[msgspec.Struct]) -> list[dict[str, str]]:\n"
            "    if not isinstance(raw, dict):\n"
            "        return []\n"
            "    wrong = []\n"
            "    for field in msgspec.structs.fields(kind):\n"
            "        name = field.encode_name\n"
            "        if name not in raw:\n"
            "            if field.required:\n"
            '                wrong.append({"field": name, "message": "is missing"})\n'
            "            continue\n"
            "        try:\n"
            "            msgspec.convert(raw[name], field.type)\n"
            "        except msgspec.ValidationError as error:\n"
            '            wrong.append({"field": name, "message": str(error)})\n'
            "    return wrong\n",
        ),
        bash(
            "python - <<'EOF'\n"
            "from pathlib import Path\n"
            "app = Path('lend/app.py')\n"
            "text = app.read_text()\n"
            "text = text.replace('msgspec.json.decode(await request.body(), type=NewLoan)', "
            "'read_body(await request.body(), NewLoan)')\n"
            "text = text.replace('msgspec.json.decode(await request.body(), type=Return)', "
            "'read_body(await request.body(), Return)')\n"
            "text = text.replace('msgspec.DecodeError: invalid', 'Invalid: invalid')\n"
            "text = text.replace('from lend.models', 'from lend.bodies import Invalid, read_body\\nfrom lend.models')\n"
            "start = text.index('    message, _, field')\n"
            "text = text[:start] + '    assert isinstance(error, Invalid)\\n    return answer({\"errors\": error.errors}, 422)\\n'\n"
            "app.write_text(text)\n"
            "EOF\n"
            "git diff --stat"
        ),
        bash(TESTS),
    )
    expect(s, "15 passed")
    s.say(
        "All 15 pass, and tests/test_api.py is untouched. I read the whole change once before I commit it.",
        bash("git diff lend/ && git status --short"),
    )
    s.user(
        "While I watch: don't use `assert` in lend/, the box runs python -O. An `if` with an error, please."
    )
    s.say(
        "Right, with -O the check would be gone. In `invalid` it is not needed at all, because only `Invalid` is mapped to "
        "it; the type in the signature says it.",
        edit("lend/app.py", "    assert isinstance(error, Invalid)\n", ""),
        edit("lend/app.py", "error: Exception) -> Response:", "error: Invalid) -> Response:"),
        bash("grep -rn assert lend; python -O -c 'import lend.app' && python -m pytest"),
    )
    expect(s, "15 passed")
    s.say(
        "No `assert` in lend/ any more, 15 pass. First commit.",
        bash(
            "git add -A && git commit -q -m 'models: msgspec structs instead of pydantic models' && git log --oneline -2"
        ),
    )
    s.plan("", *statuses(3, 3))


def moved_the_store(s: Stage) -> None:
    """The stored file cannot be read, and the agent asks."""
    s.say(
        "The tests only use new files. I'll read the real one, on a copy.",
        bash(
            'cp data/loans.json copy.json && python -c "\n'
            "from pathlib import Path\n"
            "from lend.store import Store\n"
            "print(len(Store(Path('copy.json')).loans()))\" 2>&1 | tail -1; rm copy.json"
        ),
        bash("cut -c1-400 data/loans.json; git log --format='%h %ad %s' --date=short -- data/loans.json"),
    )
    s.say(
        "I stop here and ask, as you wanted: data/loans.json cannot be read any more. Loan 1 has `returnedAt` as a number "
        "(1765179000), the other loans have a text. pydantic reads both; msgspec by default reads only the text. Two ways:\n\n"
        "A. At start, the service rewrites such numbers once as texts. Then the file has one form.\n"
        "B. The store reads numbers, too (`strict=False`), and the file stays as it is until the next loan.\n\n"
        "I would take A. Which one do you want?"
    )
    s.user("Numbers are from version 1.0, in UTC. A is fine. Is there a backup before it is rewritten?")
    s.say(
        "There will be: data/loans.json.bak, before the first write. Decision: rewrite old times once at start, because "
        "then the decoder stays strict and the file has one form. A test first.",
        write(
            "tests/test_store.py",
            '"""The file with the loans."""\n\n'
            "from __future__ import annotations\n\n"
            "import json\n"
            "from datetime import datetime, timezone\n"
            "from pathlib import Path\n\n"
            "from lend.store import Store\n\n"
            'OLD = {"memberNo": "M-0007", "toolId": "ladder-2", "fromDay": "2025-12-01", "dueDay": "2025-12-08",\n'
            '       "deposit": "15.00", "note": "", "loanId": 1, "condition": "good", "returnedAt": 1765179000}\n\n\n'
            "def test_a_time_of_version_1_0_is_read_in_utc(tmp_path: Path) -> None:\n"
            '    path = tmp_path / "loans.json"\n'
            "    path.write_text(json.dumps([OLD]))\n\n"
            "    loan = Store(path).loans()[0]\n\n"
            "    assert loan.returned_at == datetime(2025, 12, 8, 7, 30, tzinfo=timezone.utc)\n\n\n"
            "def test_old_times_are_rewritten_with_a_backup(tmp_path: Path) -> None:\n"
            '    path = tmp_path / "loans.json"\n'
            "    path.write_text(json.dumps([OLD]))\n\n"
            "    Store(path)\n\n"
            '    assert json.loads(path.read_text())[0]["returnedAt"] == "2025-12-08T07:30:00Z"\n'
            '    assert json.loads((tmp_path / "loans.json.bak").read_text()) == [OLD]\n',
        ),
        bash("python -m pytest --tb=line tests/test_store.py"),
    )
    expect(s, "2 failed")
    s.say(
        "Red. Now the rewriting.",
        edit(
            "lend/store.py",
            "        self._loans: list[Loan] = LOANS.decode(path.read_bytes()) if path.exists() else []\n",
            "        self._loans: list[Loan] = self._read() if path.exists() else []\n",
        ),
        edit(
            "lend/store.py",
            "    def _save(self) -> None:\n",
            "    def _read(self) -> list[Loan]:\n"
            '        """Return the loans. Times of version 1.0, which are numbers, are rewritten once."""\n'
            "        old = self._path.read_bytes()\n"
            "        loans = msgspec.json.decode(old, type=list[Loan], strict=False)\n"
            "        if any(isinstance(row.get('returnedAt'), int) for row in msgspec.json.decode(old)):\n"
            '            self._path.with_suffix(".json.bak").write_bytes(old)\n'
            "            self._loans = loans\n"
            "            self._save()\n"
            "        return loans\n\n"
            "    def _save(self) -> None:\n",
        ),
        edit("lend/store.py", "LOANS = msgspec.json.Decoder(list[Loan])\n\n\n", "\n"),
        bash(TESTS),
    )
    expect(s, "17 passed")
    s.say(
        "",
        bash(
            "git add -A && git commit -q -m 'store: rewrite times of version 1.0 once, with a backup' && git log --oneline -3"
        ),
    )
    s.plan("17 tests pass; committed. Next is the report script.", *statuses(4, 4))


def reversed_the_rewrite(s: Stage) -> None:
    """The user takes the decision about the file back."""
    s.user(
        "Stop, I have to take A back: the backup job compares the checksum of data/loans.json with last night's, and "
        "raises an alarm if it changed while the library is closed. So the file must not be written at start. Do B "
        "instead: read the numbers, write nothing until the next loan."
    )
    s.say(
        "Understood: B. The rewriting and the backup go, and the test now says that the file is left alone.",
        bash(
            "python - <<'EOF'\n"
            "from pathlib import Path\n"
            "test = Path('tests/test_store.py')\n"
            "text = test.read_text()\n"
            "start = text.index('def test_old_times_are_rewritten')\n"
            "test.write_text(text[:start] + '''def test_opening_the_store_writes_nothing(tmp_path: Path) -> None:\n"
            '    path = tmp_path / "loans.json"\n'
            "    path.write_text(json.dumps([OLD]))\n\n"
            "    Store(path)\n\n"
            '    assert [file.name for file in tmp_path.iterdir()] == ["loans.json"]\n'
            "    assert json.loads(path.read_text()) == [OLD]\n"
            "''')\n"
            "EOF\n"
            "python -m pytest --tb=line tests/test_store.py"
        ),
        edit(
            "lend/store.py",
            '        """Return the loans. Times of version 1.0, which are numbers, are rewritten once."""\n'
            "        old = self._path.read_bytes()\n"
            "        loans = msgspec.json.decode(old, type=list[Loan], strict=False)\n"
            "        if any(isinstance(row.get('returnedAt'), int) for row in msgspec.json.decode(old)):\n"
            '            self._path.with_suffix(".json.bak").write_bytes(old)\n'
            "            self._loans = loans\n"
            "            self._save()\n"
            "        return loans\n",
            '        """Return the loans. Not strict: times of version 1.0 are numbers."""\n'
            "        return msgspec.json.decode(self._path.read_bytes(), type=list[Loan], strict=False)\n",
        ),
        bash(TESTS),
        bash(
            "before=$(sha256sum < data/loans.json); python -c 'import lend.main'; "
            'test "$before" = "$(sha256sum < data/loans.json)" && echo \'data/loans.json is unchanged\'; ls data'
        ),
    )
    expect(s, "data/loans.json is unchanged")
    s.say(
        "",
        bash(
            "git add -A && git commit -q -m 'store: read times of version 1.0, write nothing at start' && git log --oneline -3"
        ),
    )
    s.say("The file is left alone at start; 17 tests pass; committed as the third step.")


def raised_the_deposit(s: Stage) -> None:
    """The user changes a fact; the agent moves the report script."""
    s.user(
        "Two changes. The board has met: the maximum deposit is 80 €, not 50 €. And the release moves from 4 December to "
        "11 December, because the hall is closed that week. Put the deposit into this branch, with its test."
    )
    s.say(
        "The limit is in one place. The test first.",
        bash(
            'sed -i \'s/"50.01"/"80.01"/; s/"deposit": "50"/"deposit": "80"/; s/Decimal(50)/Decimal(80)/\' tests/test_models.py'
            " && python -m pytest --tb=line tests/test_models.py"
        ),
        edit("lend/models.py", "MAX_DEPOSIT = Decimal(50)\n", "MAX_DEPOSIT = Decimal(80)\n"),
        bash(TESTS),
    )
    expect(s, "17 passed")
    s.say(
        "",
        bash("git commit -q -am 'models: the maximum deposit is 80 euros' && git log --oneline -4"),
    )
    s.say(
        "Now scripts/report.py, which still calls `model_dump`. No test runs it, so first a test that does.",
        write(
            "tests/test_report.py",
            '"""The report of overdue loans."""\n\n'
            "from __future__ import annotations\n\n"
            "import os\n"
            "import subprocess\n"
            "import sys\n\n\n"
            "def test_the_report_prints_overdue_loans() -> None:\n"
            "    done = subprocess.run(\n"
            '        [sys.executable, "scripts/report.py", "data/loans.json", "2026-11-20"],\n'
            "        capture_output=True,\n"
            "        text=True,\n"
            '        env={**os.environ, "PYTHONPATH": "."},\n'
            "    )\n\n"
            '    assert done.stdout == "2026-11-09 M-0042 drill-7\\n", done.stderr\n',
        ),
        bash("python -m pytest --tb=short tests/test_report.py"),
    )
    expect(s, "1 failed")


def stopped(s: Stage) -> None:
    """The user ends the day while tasks are open."""
    s.user(
        "I have to leave. Don't start anything new, and leave the failing test uncommitted. When you go on tomorrow, do the "
        "report first. And remember: ask me before you touch README.md, Petra is rewriting it."
    )
    s.plan("", *statuses(4, 4, ("pending", "Ask before README.md is changed: Petra is rewriting it")))
    s.say(
        "The state before I stop:",
        bash(
            "git status --short; git log --oneline -5; grep -rn 'pydantic\\|model_dump' lend scripts tests pyproject.toml"
        ),
    )
    expect(s, "?? tests/test_report.py")
    s.say(
        "Stopped. Four commits, not pushed. tests/test_report.py is there, fails and is not committed; scripts/report.py "
        "still calls `model_dump`. Open: the report, pydantic in pyproject.toml, README.md (only after asking), and the "
        "comparison of modules."
    )
    s.user("Thanks. Tomorrow at nine.")


def main() -> int:
    """Records the session. Returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="compactd-record-") as folder:
        scratch = Path(folder).resolve() / "lend"
        shutil.copytree(SERVICE, scratch, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
        stage = Stage(scratch, {**GIT, "PYTHONPATH": "."})
        for command in ("git init -q -b main", "git add -A", "git commit -q -m 'lend 1.4.0'"):
            Stage(scratch, GIT).say("", bash(command))
        play(stage)
        stage.save(TARGET)
    characters = sum(len(str(message["content"])) for message in stage.messages)
    print(f"{TARGET.name}: {len(stage.messages)} messages, {characters:,} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
