"""Run the SDK's own tests of sessions and runs with `CompactdSession` instead of its `SQLiteSession`.

    /path/of/the/frameworks/bin/python -m tests.frameworks.openai_agents.sdk_suite

The tests come with the source distribution of openai-agents, which pip downloads. Some of them look
into `SQLiteSession`: its connections, its tables, and the replacement of a suffix that only the SDK's own
stores have. They fail with any other session and are left out, by name.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.frameworks.environment import variables

FILES = (
    "memory",
    "deferred_session_writes",
    "test_agent_runner.py",
    "test_agent_runner_streamed.py",
    "test_call_model_input_filter.py",
    "test_call_model_input_filter_unit.py",
    "test_cancel_streaming.py",
    "test_handoff_history_duplication.py",
    "test_hitl_session_scenario.py",
    "test_invalid_final_output_handler.py",
    "test_max_turns.py",
    "test_native_tool_failure_history.py",
    "test_programmatic_tool_calling.py",
    "test_prompt_cache_key.py",
    "test_run_impl_resume_paths.py",
    "test_run_state_pending_input.py",
    "test_runner_guardrail_resume.py",
    "test_soft_cancel.py",
    "test_tool_batch_failure_history.py",
    "test_tool_failure_boundaries.py",
)
ABOUT_SQLITE = (
    "worker_thread",
    "exited_worker",
    "retired_connections",
    "corrupt",
    "file_lock_is_shared",
    "rollback_failure_evicts",
    "close_retries_quarantined",
    "post_commit_cancellation",
    "closed_rejects",
    "releases_write_lock",
    "clear_session_rolls_back",
    "settled_pop_failure",
    "settled_clear_failure",
)
"""Tests of `SQLiteSession`'s connections and tables."""
ABOUT_SUFFIXES = (
    "rollback_budget",
    "backend_read_limit_cannot_hide",
    "reload_unbounded_hidden",
    "expired_read_overhead",
    "resume_after_cancelled_compaction",
    "replay_strips_created_by",
    "cancelled_suffix_transaction",
    "expired_prefix",
    "encrypted_suffix_transaction",
    "backend_write_invalidates",
    "does_not_split_tool_call",
    "preserves_reasoning_and_its_follower",
    "prefix_cleanup_stops",
    "repeated_ttl_bursts",
    "suffix_transaction_rolls_back",
    "unverifiable_rows",
)
"""Tests of `OpenAIResponsesCompactionSession` and `EncryptedSession` above a store that can replace a
suffix.
"""
SHIM = """
import itertools, os, tempfile
import agents, agents.memory
from compactd.integrations.frameworks.openai_agents import CompactdSession

folder, numbers = tempfile.mkdtemp(), itertools.count()


class SQLiteSession(CompactdSession):
    def __init__(self, session_id, db_path=":memory:", *_, session_settings=None):
        if str(db_path) == ":memory:":
            db_path = os.path.join(folder, f"{next(numbers)}.db")
        super().__init__(
            session_id, db_path=str(db_path), session_settings=session_settings, context_window=1_000_000
        )

    def close(self):
        pass


agents.SQLiteSession = agents.memory.SQLiteSession = SQLiteSession
"""


def main() -> int:
    """Return pytest's exit code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = f"openai-agents=={version('openai-agents')}"
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "openai-agents"]
        subprocess.run([*pip, "-d", name, wanted], check=True)
        with tarfile.open(next(folder.glob("*.tar.gz"))) as packed:
            packed.extractall(folder, filter="data")
        source = next(each for each in folder.iterdir() if each.is_dir())
        (source / "compactd_shim.py").write_text(SHIM)
        environment = variables()
        environment["PYTHONPATH"] += os.pathsep + str(source)
        del environment["OPENAI_AGENTS_DISABLE_TRACING"]  # some of the tests are about traces
        environment["COMPACTD_HOME"] = str(folder / "home")
        left_out = " or ".join((*ABOUT_SQLITE, *ABOUT_SUFFIXES))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "compactd_shim", "-k", f"not ({left_out})"]
        return subprocess.run(
            [*command, *(f"tests/{each}" for each in FILES)], cwd=source, env=environment, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
