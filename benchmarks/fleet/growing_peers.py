"""A conversation in the stores of LangGraph and of the OpenAI Agents SDK, run in the frameworks' environment:
`python -m benchmarks.fleet.growing_peers '{"name": "PostgresSaver", "url": "postgresql://…", "turns": 100}'`.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable, Iterator


def talk(turns: int) -> Iterator[tuple[str, str]]:
    """Yield a question and an answer for each turn, always the same."""
    dice = random.Random(7)
    words = [f"{dice.randrange(16**6):06x}" for _ in range(2_000)]
    for _ in range(turns):
        yield " ".join(dice.choices(words, k=30)), " ".join(dice.choices(words, k=150))


def _postgres_saver(url: str, turns: int) -> None:
    """LangGraph's checkpoints: a graph whose node answers."""
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.graph import START, MessagesState, StateGraph

    answers = iter([answer for _, answer in talk(turns)])
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda _: {"messages": [AIMessage(next(answers))]})
    graph.add_edge(START, "model")
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        agent = graph.compile(checkpointer=saver)
        for question, _ in talk(turns):
            agent.invoke({"messages": [HumanMessage(question)]}, {"configurable": {"thread_id": "s"}})


def _sqlalchemy_session(url: str, turns: int) -> None:
    """The OpenAI Agents SDK's session."""
    from agents.extensions.memory import SQLAlchemySession

    async def run() -> None:
        address = url.replace("postgresql://", "postgresql+psycopg://")
        session = SQLAlchemySession.from_url("s", url=address, create_tables=True)
        for question, answer in talk(turns):
            await session.add_items(
                [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
            )

    asyncio.run(run())


PEERS: dict[str, Callable[[str, int], None]] = {
    "PostgresSaver": _postgres_saver,
    "SQLAlchemySession": _sqlalchemy_session,
}

if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    PEERS[given["name"]](given["url"], given["turns"])
