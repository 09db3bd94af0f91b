"""Pages of the site that stand elsewhere in the repository, and the links to them."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = ("protocol.md",)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds them beside those of docs/."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links that lead to them in the repository lead to them on the site."""
    for name in PAGES:
        markdown = markdown.replace(f"](../{name})", f"]({name})")
    return markdown
