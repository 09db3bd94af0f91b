"""MkDocs hook: adds protocol.md to the site, and adjusts the links to it."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = ("protocol.md",)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add it to the files of docs/."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adjust links to and from the added page."""
    if page.file.src_uri in PAGES:
        markdown = markdown.replace("](docs/", "](")
    for name in PAGES:
        markdown = markdown.replace(f"](../{name}", f"]({name}").replace(f"](../../{name}", f"](../{name}")
    return markdown
