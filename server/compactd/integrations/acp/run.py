"""Where `compactd acp` starts: the daemon, the client's pipes, and what stands between them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from compactd.client.asynchronous import AsyncClient
from compactd.integrations.acp.agent import OwnAgent
from compactd.integrations.acp.peer import Peer
from compactd.integrations.acp.proxy import Proxy
from compactd.integrations.acp.wire import standard_streams


async def proxied(command: Sequence[str], start: Mapping[str, object], environ: Mapping[str, str]) -> int:
    """Between the client on our pipes and the agent `command`; its exit code.

    Raises `OSError` where it cannot be started, `DaemonGone` where the daemon cannot.
    """
    async with AsyncClient(env=environ) as client:
        reader, out = await standard_streams()
        return await Proxy(client, out, start, environ).run(command, reader)


async def served(start: Mapping[str, object], system: str | None, environ: Mapping[str, str]) -> None:
    """Our own agent, until the client ends. Raises `DaemonGone`."""
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
