"""What the kiosk relies on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lend.app import create_app

LOAN = {
    "memberNo": "M-0042",
    "toolId": "drill-7",
    "fromDay": "2026-11-02",
    "dueDay": "2026-11-09",
    "deposit": "20.00",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "loans.json"


@pytest.fixture
def client(path: Path) -> TestClient:
    return TestClient(create_app(path))


def test_a_loan_is_answered_with_all_its_fields(client: TestClient) -> None:
    response = client.post("/loans", json=LOAN)

    assert response.status_code == 201
    assert response.json() == {**LOAN, "note": "", "loanId": 1, "condition": None, "returnedAt": None}


def test_unknown_fields_are_ignored(client: TestClient) -> None:
    assert client.post("/loans", json={**LOAN, "appVersion": "3.2"}).status_code == 201


def test_each_wrong_field_is_named(client: TestClient) -> None:
    response = client.post("/loans", json={**LOAN, "memberNo": "42", "toolId": "x"})

    assert response.status_code == 422
    assert [one["field"] for one in response.json()["errors"]] == ["memberNo", "toolId"]


def test_a_missing_field_is_named(client: TestClient) -> None:
    response = client.post("/loans", json={key: LOAN[key] for key in LOAN if key != "toolId"})

    assert [one["field"] for one in response.json()["errors"]] == ["toolId"]


def test_days_must_be_in_order(client: TestClient) -> None:
    response = client.post("/loans", json={**LOAN, "dueDay": "2026-11-01"})

    assert response.status_code == 422
    assert response.json()["errors"] == [{"field": "", "message": "dueDay is before fromDay"}]


def test_a_body_that_is_no_json_is_refused(client: TestClient) -> None:
    assert client.post("/loans", content=b"{").status_code == 422


def test_a_tool_is_lent_once(client: TestClient) -> None:
    client.post("/loans", json=LOAN)

    assert client.post("/loans", json=LOAN).status_code == 409


def test_a_returned_tool_can_be_lent_again(client: TestClient) -> None:
    client.post("/loans", json=LOAN)
    returned = {"condition": "worn", "returnedAt": "2026-11-08T16:30:00Z"}

    assert client.post("/loans/1/return", json=returned).json() == {
        **LOAN,
        "note": "",
        "loanId": 1,
        **returned,
    }
    assert client.post("/loans/1/return", json=returned).status_code == 409
    assert client.post("/loans", json=LOAN).json()["loanId"] == 2


def test_the_list_can_be_limited_to_open_loans(client: TestClient) -> None:
    client.post("/loans", json=LOAN)
    client.post("/loans/1/return", json={"condition": "good", "returnedAt": "2026-11-08T16:30:00Z"})
    client.post("/loans", json={**LOAN, "toolId": "saw-1"})

    assert [one["loanId"] for one in client.get("/loans").json()] == [1, 2]
    assert [one["loanId"] for one in client.get("/loans?open=1").json()] == [2]


def test_loans_are_in_the_file_after_a_restart(path: Path, client: TestClient) -> None:
    client.post("/loans", json=LOAN)

    assert TestClient(create_app(path)).get("/loans").json() == client.get("/loans").json()
    assert json.loads(path.read_bytes())[0]["memberNo"] == "M-0042"
