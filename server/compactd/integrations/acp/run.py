"""Run `compactd acp`: start the daemon, and connect it and the ACP client's pipes to the agent or proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from compactd.client.asynchronous import AsyncClient
from compactd.integrations.acp.acp_lines import standard_streams
from compactd.integrations.acp.agent import OwnAgent
from compactd.integrations.acp.peer import Peer
from compactd.integrations.acp.proxy import Proxy


async def run_proxy(command: Sequence[str], start: Mapping[str, object], environ: Mapping[str, str]) -> int:
    """Run the proxy between the client on stdin and stdout and the agent `command`. Return the agent's exit
    code.

    Raise `OSError` if the agent cannot be started, and `DaemonGone` if the daemon cannot be started.
    """
    async with AsyncClient(env=environ) as client:
        reader, out = await standard_streams()
        return await Proxy(client, out, start, environ).run(command, reader)


async def serve_agent(start: Mapping[str, object], system: str | None, environ: Mapping[str, str]) -> None:
    """Run compactd's own agent until the client closes the connection. Raise `DaemonGone` if the daemon
    cannot be started.
    """
    client = AsyncClient(env=environ, answers={"tool/execute": lambda params: agent.execute(params)})
    agent = OwnAgent(client, start, system)
    async with client:
        reader, out = await standard_streams()
        agent.peer = Peer(reader, out, agent.handle)
        watching = asyncio.create_task(agent.watch())
        try:
            await agent.peer.serve()
        finally:
            watching.cancel()
