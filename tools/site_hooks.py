"""Lets the site show the pages that stand beside `docs/`: the README as its front page, and the project's own papers.

In the repository their links go to `docs/...`, and those of the docs go up to them; on the site all are neighbours.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
PAPERS = ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
_TARGET = re.compile(r"(?P<open>\]\(|src=\")(?P<path>[^)\"#\s:]+)(?P<rest>[)\"#])")


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    for name, shown in (("README.md", "index.md"), *((paper, paper) for paper in PAPERS)):
        files.append(File.generated(config, shown, content=_neighbours((ROOT / name).read_text(encoding="utf-8"))))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """`../SECURITY.md` of a page in `docs/` is its neighbour here."""
    up = page.file.src_uri.count("/")
    for paper in PAPERS:
        markdown = markdown.replace(f"]({'../' * (up + 1)}{paper}", f"]({'../' * up}{paper}")
    return markdown


def _neighbours(text: str) -> str:
    return _TARGET.sub(lambda match: match["open"] + match["path"].removeprefix("docs/") + match["rest"], text)
