"""The walk that every tool is taken through in windows of several sizes: permissions, long ones, a question, silences,
and a window that changes while a dialog is open.

Which dialogs a tool has is `dialogs`'; walking them is `canary`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.real_tools.canary import Result, walk_through
from tests.real_tools.dialogs import BASH, WALKS, WRITTEN, Dialog, Walk
from tests.real_tools.mockmodel.scene import LONG_LINES

LINES = tuple(LONG_LINES)
SIZES = ((40, 15), (60, 20), (80, 24), (120, 40), (200, 60))
_SILENT = ("bait: silent", "thinking: silent")
_ASKED = ("question: by label", "question: by number", "question: n")


def sized_walk(tool: str, size: tuple[int, int]) -> Walk:
    """Its own first questions, if it has any; then what all tools are asked; then its own way of asking a question."""
    main = WALKS[tool][0]
    first = tuple(one for one in main.dialogs if not (one.scene or one.says) and not one.replies[0].startswith("idle:"))
    named = {dialog.name: dialog for dialog in main.dialogs}
    asked = tuple(replace(named[name], asks="") for name in _ASKED if name in named)
    quiet = tuple(named[name] for name in _SILENT if name in named)
    return replace(main, name="sizes", dialogs=(*first, *_permissions(named, size), *quiet, *asked))


def _permissions(named: dict[str, Dialog], size: tuple[int, int]) -> Iterator[Dialog]:
    """Those that the tool asks for at all.  A small window grows under the dialog, a large one shrinks."""
    change = (20, 6) if size[0] <= 60 else (-20, -6)
    if "bash: n" in named:
        yield Dialog("bash: y", "bash", ("y",), made=(BASH,))
        yield Dialog("bash: n", "bash", ("n",), unmade=(BASH,))
        yield Dialog("bash, resized: n", "bash", ("n",), unmade=(BASH,), resize=change)
        yield Dialog("bash, resized: y", "bash", ("y",), made=(BASH,), resize=change)
    if "bash of many lines: n" in named:
        yield Dialog("here-document of 60 lines: n", "heredoc", ("n",), unmade=(BASH,), lines=LINES)
    if "write: n" in named:
        yield Dialog("write of 60 lines: n", "longwrite", ("n",), unmade=(WRITTEN,), lines=LINES)
        yield Dialog("write of 60 lines: y", "longwrite", ("y",), made=(WRITTEN,), lines=LINES)
    if "edit: n" in named:
        yield Dialog("edit of 60 lines: n", "longedit", named["edit: n"].replies, unmade=("blue",), lines=LINES)


def walk_sizes(tool: str, sizes: tuple[tuple[int, int], ...] = SIZES) -> Iterator[Result]:
    for size in sizes:
        yield from walk_through(tool, sized_walk(tool, size), size)
