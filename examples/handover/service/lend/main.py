"""The service with its usual file: `uvicorn lend.main:app`."""

from pathlib import Path

from lend.app import create_app

app = create_app(Path("data/loans.json"))
