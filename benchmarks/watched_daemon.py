"""The daemon with a heartbeat in its loop: how long the loop stood still, and who held it.

    python benchmarks/watched_daemon.py FILE

Serves as `compactd serve` does; when it ends, FILE has a JSON list of stalls.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from pathlib import Path
from time import perf_counter, sleep
from types import FrameType

from compactd.daemon.rpc.stdio import take_stdio

BEAT_S = 0.001
STALL_S = 0.004
"""A beat that is later than this is written down."""


class Watch:
    """Beats in the loop, and in a thread beside that looks where everyone is when one of the two is late.

    A late loop under a punctual thread is busy itself. Where both are late, somebody held the interpreter,
    or the machine ran something else: `waited_ms` is the loop's thread's own share of the latter.
    """

    def __init__(self) -> None:
        self.stalls: list[dict[str, object]] = []
        self._due = self._beat_at = self._collecting_at = perf_counter()
        self._waited = 0.0
        self._stalled_at = 0.0
        self._seen: tuple[str, list[str]] = ("", [])
        self._loop_thread = threading.get_ident()
        self._native = threading.get_native_id()

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the heartbeat in `loop`, which this thread will run next. It never stops."""
        gc.callbacks.append(self._collected)
        threading.Thread(target=self._look, name="watch", daemon=True).start()
        self._due = perf_counter() + BEAT_S
        loop.call_later(BEAT_S, self._beat)

    def _beat(self) -> None:
        now = perf_counter()
        self._beat_at = now
        before, self._waited = self._waited, self._waited_s()
        if now - self._due > STALL_S:
            kind, where = self._seen
            self._stalled(now, now - self._due, kind, where, self._waited - before)
        self._seen = ("", [])
        self._due = perf_counter() + BEAT_S
        asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        now = perf_counter()
        if phase == "stop" and now - self._collecting_at > STALL_S:
            where = _stack(sys._getframe(1))
            self._stalled(now, now - self._collecting_at, f"garbage {info['generation']}", where, 0.0)
        self._collecting_at = now

    def _stalled(self, at: float, stall_s: float, kind: str, where: list[str], waited_s: float) -> None:
        self._stalled_at = at
        self.stalls.append(
            {
                "at": at,
                "stall_ms": 1000 * stall_s,
                "waited_ms": 1000 * waited_s,
                "kind": kind,
                "where": where,
            }
        )

    def _look(self) -> None:
        while True:
            before = perf_counter()
            sleep(BEAT_S)
            now = perf_counter()
            if now - before > STALL_S:
                # The thread that held the interpreter lock has just released it: its stack shows what it did.
                self._seen = ("held", self._others())
                if self.stalls and not self.stalls[-1]["kind"] and before < self._stalled_at:
                    # The event loop woke up before this thread and recorded the stall already.
                    self.stalls[-1].update(kind="held", where=self._seen[1])
            elif now - self._beat_at > STALL_S and not self._seen[0]:
                self._seen = ("loop", _stack(sys._current_frames().get(self._loop_thread)))

    def _others(self) -> list[str]:
        me = threading.get_ident()
        found: list[str] = []
        for thread, frame in sys._current_frames().items():
            if thread != me:
                stack = _stack(frame)
                if stack and not stack[0].startswith(
                    ("threading.py", "thread.py", "reader.py", "writer.py", "selectors.py")
                ):
                    found += [*stack, "--"]
        return found

    def _waited_s(self) -> float:
        """Return how many seconds the event loop's thread has waited for a core so far; 0 if the system does
        not say."""
        try:
            with Path(f"/proc/self/task/{self._native}/schedstat").open("rb") as file:
                return int(file.read().split()[1]) / 1e9
        except OSError:
            return 0.0


def _stack(frame: FrameType | None, depth: int = 7) -> list[str]:
    found: list[str] = []
    while frame is not None and len(found) < depth:
        code = frame.f_code
        found.append(f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return found


class _Policy(asyncio.DefaultEventLoopPolicy):
    """Makes loops that are watched."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        loop = super().new_event_loop()
        self._watch.begin(loop)
        return loop


def main(file: Path) -> int:
    """Serve like `compactd serve`, and record stalls. Return the exit code."""
    fds = take_stdio()
    import msgspec

    from compactd.daemon.app import serve

    watch = Watch()
    asyncio.set_event_loop_policy(_Policy(watch))
    try:
        return serve(fds)
    finally:
        file.write_bytes(msgspec.json.encode(watch.stalls))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
