"""MkDocs hook: adds protocol.md and the command reference to the site, and adjusts the links to them."""

from __future__ import annotations

from pathlib import Path

import man_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = ("protocol.md",)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add them to the files of docs/."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text("utf-8")))
    files.append(File.generated(config, "commands.md", content=man_page.page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adjust links to and from the added pages."""
    if page.file.src_uri in PAGES:
        markdown = markdown.replace("](docs/", "](")
    for name in PAGES:
        markdown = markdown.replace(f"](../{name}", f"]({name}").replace(f"](../../{name}", f"](../{name}")
    return markdown
