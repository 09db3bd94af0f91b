"""Members, tools and loans, as they are on the wire and in the file."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

MAX_DEPOSIT = Decimal(50)
"""The largest deposit, in euros."""

MemberNo = Annotated[str, Field(pattern=r"^M-\d{4}$")]
ToolId = Annotated[str, Field(min_length=3, max_length=20)]
Condition = Literal["good", "worn", "broken"]


class Model(BaseModel):
    """Field names are camelCase on the wire. Unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")


class NewLoan(Model):
    """The body of `POST /loans`."""

    member_no: MemberNo
    tool_id: ToolId
    from_day: date
    due_day: date
    deposit: Annotated[Decimal, Field(ge=0, le=MAX_DEPOSIT)] = Decimal(0)
    note: str = Field(default="", max_length=200)

    @model_validator(mode="after")
    def days_in_order(self) -> NewLoan:
        if self.due_day < self.from_day:
            raise ValueError("dueDay is before fromDay")
        return self


class Return(Model):
    """The body of `POST /loans/{id}/return`."""

    condition: Condition
    returned_at: datetime


class Loan(NewLoan):
    """A loan in the file."""

    loan_id: int
    condition: Condition | None = None
    returned_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.returned_at is None
