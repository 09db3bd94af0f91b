"""`compactd schema`: prints the protocol's published files, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import run

PROTOCOL = Path(__file__).parents[3] / "server" / "compactd" / "protocol"


@pytest.mark.parametrize(
    ("kind", "file"), [((), "schema.json"), (("json",), "schema.json"), (("openrpc",), "openrpc.json")]
)
def test_each_kind_prints_its_file(kind: tuple[str, ...], file: str, tmp_path: Path) -> None:
    ended = run(tmp_path, "schema", *kind)

    assert (ended.code, ended.out, ended.err) == (0, (PROTOCOL / file).read_text("utf-8"), "")


def test_another_kind_is_refused_and_the_message_names_those_that_exist(tmp_path: Path) -> None:
    ended = run(tmp_path, "schema", "lua")

    assert (ended.code, ended.out) == (2, "")
    assert "'lua' is not one of 'json', 'openrpc'" in ended.err
