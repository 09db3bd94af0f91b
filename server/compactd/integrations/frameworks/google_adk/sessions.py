"""Which session of the daemon belongs to an agent's run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from google.adk.agents.callback_context import CallbackContext
from google.adk.sessions import InMemorySessionService, Session

from compactd.integrations.frameworks.engine import Engine, SessionOptions, engine_of
from compactd.integrations.frameworks.mirror import Mirror

CLIENT = "google-adk"
_SAFE = " @:+,=!"


@dataclass(frozen=True)
class Sessions:
    """How ADK's sessions become sessions of the daemon. Holds options only: it can be pickled and copied."""

    options: SessionOptions
    persist: bool | None
    command: tuple[str, ...] | None

    @property
    def engine(self) -> Engine:
        """The daemon of this process."""
        return engine_of(self.command)

    def of_run(self, context: CallbackContext) -> Mirror:
        """Return the mirror of the agent that runs. Starts nothing.

        The root agent has the session's name. Another agent, a branch and a delegated task have a session of
        their own: each sees another conversation.
        """
        run = context.get_invocation_context()
        root = session_name(run.session)
        own = _own_name(run)
        persist = self.persist
        if persist is None:
            # Such a session ends with the process, and its id never comes back.
            persist = not isinstance(run.session_service, InMemorySessionService)
        options = replace(self.options, persist=persist)
        if not own:
            return self.engine.mirror(root, options)
        return self.engine.mirror(f"{root}/{own}", replace(options, parent_session_id=root))

    def of_session(self, session: Session, agent: str | None) -> Mirror:
        """Return the mirror of a session of ADK's, for a person: that of the root agent, or of `agent`."""
        name = session_name(session) + (f"/{_quoted(agent)}" if agent else "")
        known = self.engine.known(name)
        return known or self.engine.mirror(name, replace(self.options, persist=self.persist is not False))


def session_name(session: Session) -> str:
    """Return the name of the root agent's session. Two sessions of ADK's never have one name."""
    return f"{CLIENT}:" + "/".join(map(_quoted, (session.app_name, session.user_id, session.id)))


def _own_name(run: Any) -> str:
    """Return what distinguishes an agent's session from that of the root agent; nothing if it is the root
    agent's.
    """
    agent = run.agent
    # A node of a workflow has no parent, but a path.
    is_root = agent is getattr(agent, "root_agent", agent) and "/" not in (run.node_path or "")
    parts = [] if is_root else [_quoted(agent.name)]
    if run.branch:
        parts.append(f"branch {_quoted(run.branch)}")
    if run.isolation_scope:
        parts.append(f"task {_quoted(run.isolation_scope)}")
    return "/".join(parts)


def _quoted(text: str) -> str:
    return quote(text, safe=_SAFE, errors="surrogatepass")
