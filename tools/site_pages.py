"""Pages of the site that stand elsewhere in the repository or are generated, and the links to them."""

from __future__ import annotations

from pathlib import Path

import man_page
import reference_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = ("protocol.md",)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds them to those of docs/."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text("utf-8")))
    files.append(File.generated(config, "commands.md", content=man_page.page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links lead to them and from them on the site, too; tables stand where their marks are."""
    if page.file.src_uri in PAGES:
        markdown = markdown.replace("](docs/", "](")
    for name in PAGES:
        markdown = markdown.replace(f"](../{name}", f"]({name}").replace(f"](../../{name}", f"](../{name}")
    return reference_pages.filled(markdown)
