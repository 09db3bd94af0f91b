"""The plugin, built from this checkout as `npm pack` builds it. This needs the packages of the frameworks for
Node, and not OpenClaw."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.frameworks.environment import ROOT
from tests.frameworks.node.driving import node
from tests.frameworks.node.driving import packages as compilers

HERE = Path(__file__).resolve().parent
PLUGIN = ROOT / "integrations" / "openclaw"
BASE = ROOT / "integrations" / "node"


def built() -> Path:
    """Return the folder of the plugin. It is built once for each state of the sources."""
    place = compilers()
    assert place is not None
    sources = sorted(
        [*PLUGIN.glob("src/*.ts"), *PLUGIN.glob("*.json"), *BASE.glob("src/*.ts"), BASE / "tsconfig.json"]
    )
    digest = hashlib.sha256()
    for source in sources:
        digest.update(str(source.relative_to(ROOT)).encode() + b"\0" + source.read_bytes())
    done = place / "builds" / f"openclaw-{digest.hexdigest()[:16]}"
    if done.exists():
        return done / "compactd"
    done.parent.mkdir(exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=done.parent))
    for folder in (PLUGIN, BASE):
        shutil.copytree(folder, making / folder.name, ignore=shutil.ignore_patterns("node_modules", "dist"))
    types = making / "openclaw" / "node_modules"
    types.symlink_to(place / "node_modules")
    compiler = place / "node_modules" / "typescript" / "bin" / "tsc"
    subprocess.run([node(), str(compiler), "-p", str(making / "openclaw")], check=True)
    types.unlink()
    # OpenClaw gives a plugin packages by the names of their folders, and has one of this name itself.
    (making / "openclaw").rename(making / "compactd")
    try:
        making.rename(done)
    except OSError:  # another worker was first
        shutil.rmtree(making)
    return done / "compactd"
