"""All loans, in one JSON file that is written after each change."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter

from lend.models import Loan, NewLoan, Return

LOANS = TypeAdapter(list[Loan])


class NotFound(Exception):
    """There is no such loan."""


class Conflict(Exception):
    """The tool is lent already, or the loan has ended."""


class Store:
    """The loans of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loans: list[Loan] = LOANS.validate_json(path.read_bytes()) if path.exists() else []

    def loans(self, *, only_open: bool = False) -> list[Loan]:
        return [loan for loan in self._loans if loan.is_open or not only_open]

    def lend(self, wanted: NewLoan) -> Loan:
        if any(loan.tool_id == wanted.tool_id for loan in self.loans(only_open=True)):
            raise Conflict(f"{wanted.tool_id} is lent")
        number = max((loan.loan_id for loan in self._loans), default=0) + 1
        loan = Loan(loan_id=number, **wanted.model_dump())
        self._loans.append(loan)
        self._save()
        return loan

    def take_back(self, loan_id: int, returned: Return) -> Loan:
        at = next((n for n, loan in enumerate(self._loans) if loan.loan_id == loan_id), None)
        if at is None:
            raise NotFound(f"no loan {loan_id}")
        if not self._loans[at].is_open:
            raise Conflict(f"loan {loan_id} has ended")
        self._loans[at] = self._loans[at].model_copy(update=returned.model_dump())
        self._save()
        return self._loans[at]

    def _save(self) -> None:
        new = self._path.with_suffix(".new")
        new.write_bytes(LOANS.dump_json(self._loans, by_alias=True, indent=1))
        new.replace(self._path)
