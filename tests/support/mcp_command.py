"""Runs `compactd mcp` as a process, with the official MCP client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from mcp import Client as Mcp
from mcp import StdioServerParameters, stdio_client
from mcp_types import TextContent, Tool

from tests.support.command_line import COMPACTD, TIMEOUT_S, environment

T = TypeVar("T")


class Server:
    """`compactd mcp OPTIONS`, and the official client that speaks to it, in a loop of its own."""

    def __init__(self, home: Path, *options: str, folder: Path | None = None) -> None:
        """`folder`: where the server is started; left out, `home`."""
        command, *arguments = COMPACTD
        self._parameters = StdioServerParameters(
            command=command, args=[*arguments, "mcp", *options], env=environment(home), cwd=folder or home
        )
        self._loop = asyncio.new_event_loop()
        self._ready: Future[Mcp] = Future()
        self._done = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._talk()))

    def __enter__(self) -> Server:
        self._thread.start()
        self.client = self._ready.result(TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(TIMEOUT_S)
        self._loop.close()

    def told(self, tool: str, **arguments: object) -> str:
        """Call a tool and return its text, with `error: ` before it if it is an error."""
        result = self._wait(self.client.call_tool(tool, arguments))
        (block,) = result.content
        assert isinstance(block, TextContent)
        return f"error: {block.text}" if result.is_error else block.text

    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self._wait(self.client.list_tools()).tools}

    def _wait(self, asked: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result(TIMEOUT_S)

    async def _talk(self) -> None:
        try:
            async with Mcp(stdio_client(self._parameters)) as client:
                self._ready.set_result(client)
                await self._done.wait()
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)
