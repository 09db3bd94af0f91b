"""Uses a store in a folder that this process may not write."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from compactd.protocol.errors import StorageFailed
from compactd.storage.folder import FolderStore
from compactd.storage.paths import file_stem


def first(session_id: str) -> bytes:
    return b'{"type":"session","v":1,"id":"%s"}' % session_id.encode()


async def main(home: Path) -> dict[str, object]:
    seen: dict[str, object] = {}
    messages: list[str] = []

    async def refused(act: Callable[[], object | Awaitable[object]]) -> list[object]:
        try:
            done = act()
            if isinstance(done, Awaitable):
                await done
        except StorageFailed as failed:
            messages.append(failed.message)
            return [type(failed).__name__, failed.code]
        return ["done"]

    store = FolderStore(home)
    for session_id in ("s1", "s2"):
        journal = store.create(session_id, first(session_id), "os")
        journal.append([b'{"type":"message"}'])
        await journal.close()
    folder = home / "sessions"
    held, _ = store.open("s2", durability="disk")
    for path in folder.glob("s1*"):
        path.chmod(0o400)
    folder.chmod(0o500)

    seen["create"] = await refused(lambda: store.create("s3", first("s3"), "os"))
    seen["open"] = await refused(lambda: store.open("s1", durability="os"))
    seen["delete"] = await refused(lambda: store.delete("s1"))
    seen["save_info"] = await refused(lambda: store.save_info("s1", b"{}", size_bytes=1))
    seen["replace"] = await refused(lambda: held.replace({1: b'{"type":"message","x":1}'}))
    follower, records = store.read("s1")
    follower.close()
    seen["read"] = len(records)
    seen["listed"] = sorted(one.session_id for one in store.list())
    await held.durable(held.append([b'{"type":"message"}']))
    await held.close()
    seen["stored"] = [len(store.salvage("s1")), len(store.salvage("s2"))]
    seen["messages"] = messages
    folder.chmod(0o700)
    await store.close()
    return seen


file_stem("s1")  # imports what it needs: `nobody` may not read where Python is installed
if os.getuid() == 0:
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
