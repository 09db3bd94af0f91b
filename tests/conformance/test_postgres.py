"""The conformance suite with sessions in PostgreSQL instead of files."""

from __future__ import annotations

import os
import sys

import pytest

from compactd_conformance import suite
from tests.conformance.test_suite import OURS, failed
from tests.support import postgres
from tests.support.postgres import Server

server, database = postgres.server, postgres.database
pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

IN_DATABASE = """
import os, sys
os.environ |= {"COMPACTD_STORE": sys.argv[1], "COMPACTD_TENANT": os.environ["COMPACTD_HOME"]}
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Starts a daemon that uses a database, for a tenant that is named like its data folder: each check has its
own folder.
"""
ABOUT_FILES = {"a-folder-that-cannot-be-written", "damage-in-the-middle", "torn-records-are-told"}
"""Checks of what happens to files."""
ABOUT_WRITERS = {"one-writer"}
"""A check that a second daemon may only read: here it may write."""


def test_our_daemon_passes_every_check_with_sessions_in_a_database(server: Server, database: str) -> None:
    command = (sys.executable, "-c", IN_DATABASE, server.url(database), *OURS)

    verdicts = suite.run(command, os.environ)

    assert set(failed(verdicts)) == ABOUT_FILES | ABOUT_WRITERS
