"""Builds everything that a release consists of, in build/release: `python tools/release.py`.

It publishes nothing. It builds wheels and source archives of compactd and its conformance suite, the VS Code
extension, the packages for Emacs and Neovim, a bill of materials, a folder of wheels for machines without a
package index, and checksums. The same sources give the same bytes, except for `wheels/`, which contains
files of the index. docs/dev/release.md describes how to publish the result.

`--only PART` builds some of it. `--repository ADDRESS` builds nothing: it writes the address of the
repository into pyproject.toml and into every page that names it.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSION: str = PROJECT["version"]
REPOSITORY: str = PROJECT["urls"]["Repository"]
PLACEHOLDER_HOST = "example.org"
"""The host of the repository's address until somebody publishes the project."""
EDITABLES = "editables>=0.3,<1"
"""What hatchling asks for if a clone is installed in place (1.33)."""
STAMP = (2020, 2, 2, 0, 0, 0)
"""The time of every file in the archives: the time that hatchling uses, too."""


def versions() -> dict[str, str]:
    """Returns the version in each file that states one."""
    suite = tomllib.loads((ROOT / "conformance" / "pyproject.toml").read_text("utf-8"))
    extension = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text("utf-8"))
    packages = {
        f"integrations/{name}/{file}": json.loads((ROOT / "integrations" / name / file).read_text("utf-8"))
        for name, file in (
            ("node", "package.json"),
            ("openclaw", "package.json"),
            ("openclaw", "openclaw.plugin.json"),
        )
    }
    emacs = (ROOT / "editors" / "emacs" / "compactd.el").read_text("utf-8")
    found = re.search(r"^;; Version: (.+)$", emacs, re.MULTILINE)
    return {
        "pyproject.toml": VERSION,
        "conformance/pyproject.toml": suite["project"]["version"],
        "editors/vscode/package.json": extension["version"],
        **{name: package["version"] for name, package in packages.items()},
        "editors/emacs/compactd.el": found[1] if found else "",
    }


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Runs a program and stops if it fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


def build_python(out: Path) -> None:
    """Builds wheels and source archives with the pinned backend."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        python = Path(folder) / "bin" / "python"
        lock = ROOT / "requirements-build.lock"
        run(python, "-m", "pip", "install", "--quiet", "--require-hashes", "--requirement", lock)
        for project in (ROOT, ROOT / "conformance"):
            run(python, "-m", "build", "--no-isolation", "--outdir", out, project)


def build_vscode(out: Path) -> None:
    """Builds the extension, and packs it again without times."""
    folder = ROOT / "editors" / "vscode"
    if not (folder / "node_modules").is_dir():
        run("npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", cwd=folder)
    run("npm", "run", "package", cwd=folder)
    with zipfile.ZipFile(folder / "dist" / "compactd.vsix") as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(out / f"compactd-{VERSION}.vsix", "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in sorted(files.items()):
            packed.writestr(zipfile.ZipInfo(name, STAMP), data, zipfile.ZIP_DEFLATED)


def build_node(out: Path) -> None:
    """Builds the package for Node. npm gives all files in it the same time."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "node"
        shutil.copytree(
            ROOT / "integrations" / "node", place, ignore=shutil.ignore_patterns("node_modules", "dist")
        )
        shutil.copy(ROOT / "LICENSE", place)
        run("npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", cwd=place)
        run("npm", "pack", "--pack-destination", out.resolve(), cwd=place)


def build_openclaw(out: Path) -> None:
    """Builds the plugin for OpenClaw, which contains what it uses of the package for Node."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("node", "openclaw"):
            shutil.copytree(
                ROOT / "integrations" / name,
                Path(folder) / name,
                ignore=shutil.ignore_patterns("node_modules", "dist"),
            )
        place = Path(folder) / "openclaw"
        shutil.copy(ROOT / "LICENSE", place)
        run("npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", cwd=place)
        run("npm", "pack", "--pack-destination", out.resolve(), cwd=place)


def build_emacs(out: Path) -> None:
    """Builds the package for Emacs, with its manual if makeinfo is installed."""
    run(sys.executable, ROOT / "editors" / "emacs" / "build.py", out)


def build_neovim(out: Path) -> None:
    """Packs the plugin for Neovim."""
    folder = ROOT / "editors" / "nvim"
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    files["LICENSE"] = ROOT / "LICENSE"
    name = f"compactd.nvim-{VERSION}"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for relative, path in sorted(files.items()):
            data = path.read_bytes()
            entry = tarfile.TarInfo(f"{name}/{relative}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    (out / f"{name}.tar.gz").write_bytes(gzip.compress(buffer.getvalue(), mtime=0))


def build_bill(out: Path) -> None:
    """Writes the bill of materials as CycloneDX JSON."""
    run(sys.executable, ROOT / "tools" / "sbom.py", out / f"compactd-{VERSION}.cdx.json")


def build_wheels(out: Path) -> None:
    """Collects wheels for this Python and this platform: the dependencies of compactd and of its extras, and
    the backend that an installation from the sources needs.
    """
    folder = out / "wheels"
    folder.mkdir(exist_ok=True)
    lines = (ROOT / "requirements-dev.lock").read_text("utf-8").splitlines()
    pins = [line.removesuffix("\\").strip() for line in lines if "==" in line]
    extras = [one for extra in ("tui", "mcp") for one in PROJECT["optional-dependencies"][extra]]
    download = (
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--only-binary",
        ":all:",
        "--dest",
        folder,
    )
    with tempfile.TemporaryDirectory() as work:
        constraints = Path(work) / "constraints.txt"
        constraints.write_text("\n".join(pins) + "\n", "utf-8")
        run(*download, "--constraint", constraints, *PROJECT["dependencies"], *extras)
    run(*download, "--require-hashes", "--requirement", ROOT / "requirements-build.lock")
    run(*download, EDITABLES)
    for wheel in out.glob("*.whl"):
        shutil.copy(wheel, folder)


PARTS: dict[str, Callable[[Path], None]] = {
    "python": build_python,
    "vscode": build_vscode,
    "node": build_node,
    "openclaw": build_openclaw,
    "emacs": build_emacs,
    "neovim": build_neovim,
    "sbom": build_bill,
    "wheels": build_wheels,
}


def write_checksums(out: Path) -> None:
    """Writes SHA256SUMS, which `sha256sum --check SHA256SUMS` reads."""
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(out)}\n" for path in files]
    (out / "SHA256SUMS").write_text("".join(lines), "utf-8")


def warnings() -> Iterable[str]:
    """Yields what a person who publishes should know."""
    if PLACEHOLDER_HOST in REPOSITORY:
        yield f"the repository's address is the placeholder {REPOSITORY}; --repository ADDRESS replaces it"
    if (ROOT / ".git").exists():
        told = subprocess.run(
            ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout
        if told:
            yield "there are changes that are not committed; they are in the archives"


def write_address(new: str) -> list[str]:
    """Replaces the repository's address in all files that git knows. Returns their names."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    changed: list[str] = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if REPOSITORY.encode() in data:
            path.write_bytes(data.replace(REPOSITORY.encode(), new.encode()))
            changed.append(name)
    return changed


def main() -> int:
    """Builds the release. Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=PARTS, action="append", help="build only this part")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "release", help="the folder to write to")
    parser.add_argument(
        "--repository", metavar="ADDRESS", help="write the repository's address, build nothing"
    )
    given = parser.parse_args()
    if given.repository:
        print("\n".join(write_address(given.repository.rstrip("/"))))
        return 0
    if len(set(versions().values())) != 1:
        sys.exit(f"the versions differ: {versions()}")
    out: Path = given.out.absolute()
    if not given.only and out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    os.environ["SOURCE_DATE_EPOCH"] = "1580601600"
    for part in given.only or PARTS:
        print(f"building {part} ...", flush=True)
        PARTS[part](out)
    write_checksums(out)
    for path in sorted(path for path in out.iterdir() if path.is_file()):
        print(f"{path.stat().st_size:>10,}  {path.relative_to(out)}")
    for warning in warnings():
        print(f"note: {warning}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
