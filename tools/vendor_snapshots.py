"""Reads the pictures that a vendor tests its own tool with, and reports which dialogs would not be raised.

    tools/vendor-snapshots codex CHECKOUT         also: gemini, qwen, vibe, generic (clack)
    tools/vendor-snapshots codex CHECKOUT --all   every picture with what is read on it

CHECKOUT is a work tree, or a bare git repository (its HEAD is read).  Pictures are insta's `*.snap` files, vitest's
`*.snap` files and Textual's `*.svg`.  They have no colours and no cursor, so a list that only a colour points at is not
to be expected; what is a dialog is guessed from the picture's name.  A new version of a tool is known before its users
meet it: run this on its checkout.
"""

from __future__ import annotations

import argparse
import html
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.detection.verdict import Moment, Patience, Situation, decide_verdict
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

SOON_S = 2.0  # a dialog that is understood is raised by then
ASKS = re.compile(
    r"approv|confirm|permission|ask_?user|user_input|elicit|trust|question|consent|auth_?dialog|login"
    r"|^(?:select|multi-|group-multi|text|password|autocomplete|path|date)",
    re.I,
)
SETTLED = re.compile(
    r"submitted|cancel(?:l?ed)?\b|history|decision|approved|denied|rejected|summary|indicator|error|warning|unsupported"
    r"|failure|reports|no_alternative|disables|does not",
    re.I,
)
VITEST = re.compile(r"^exports\[`(?P<name>(?:[^`\\]|\\.)*)`\] = `\n?(?P<body>(?:[^`\\]|\\.)*)`;$", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    view: View

    @property
    def asks(self) -> bool:
        return bool(ASKS.search(self.name)) and not SETTLED.search(self.name)


@dataclass(frozen=True, slots=True)
class Reading:
    picture: Picture
    said: str  # "raised TYPE", "later TYPE" or "idle"
    choices: tuple[str, ...]
    question: str


def files_of(checkout: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every file with pictures, from a work tree or from the HEAD of a bare repository."""
    if (checkout / "HEAD").is_file() and not (checkout / ".git").exists():
        git = ["git", "-C", str(checkout)]
        names = subprocess.run(
            [*git, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, text=True, check=True
        )
        for name in names.stdout.splitlines():
            if name.endswith((".snap", ".svg")):
                shown = subprocess.run([*git, "show", f"HEAD:{name}"], capture_output=True, check=True)
                yield name, shown.stdout.decode("utf-8", "replace")
        return
    for path in sorted((*checkout.rglob("*.snap"), *checkout.rglob("*.svg"))):
        yield str(path.relative_to(checkout)), path.read_text("utf-8", "replace")


def pictures_in(name: str, text: str) -> Iterator[Picture]:
    if name.endswith(".svg"):
        rows = _svg_rows(text)
        if rows:
            yield Picture(Path(name).stem, _view(rows))
    elif text.startswith("---"):
        head, _, body = text[3:].partition("\n---\n")
        if "Buffer {" not in body and body.strip()[:1] != "[" and head:
            yield Picture(Path(name).stem.rpartition("__")[2], _view(_rows(body)))
    else:
        for match in VITEST.finditer(text):
            body = re.sub(r"\\([`$\\])", r"\1", match["body"]).strip("\n").removeprefix('"').removesuffix('"')
            title = f"{Path(name).name.partition('.')[0]} {match['name']}"
            if body.startswith("[\n"):
                yield from _first_frame(title, body)
            elif not body.lstrip().startswith(("[", "{", "<svg")):
                yield Picture(title, _view(_rows(body)))


def _first_frame(title: str, body: str) -> Iterator[Picture]:
    """A list of what a program has written: its first picture, which waits for keys, where it hides the cursor."""
    pieces = re.findall(r'^  "((?:[^"\\]|\\.)*)",?$', body, re.M | re.S)
    drawn = pieces[1] if len(pieces) > 1 and pieces[0] == "<cursor.hide>" else ""
    if "\n" in drawn:
        screen = Screen(40, 100)
        screen.feed(("\x1b[?25l" + drawn.replace("\n", "\r\n")).encode())
        yield Picture(title, View.of(screen))


def _view(rows: tuple[str, ...]) -> View:
    return replace(View.from_text("\n".join((*rows, ""))), cursor_visible=False)


def _rows(body: str) -> tuple[str, ...]:
    rows = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", body).strip("\n").split("\n")
    quoted = all(row[:1] == row[-1:] == '"' for row in rows)  # a terminal backend writes its rows so
    return tuple((row[1:-1] if quoted else row).rstrip() for row in rows)


def _svg_rows(text: str) -> tuple[str, ...]:
    """Textual writes one `<text>` per piece of a row, all pieces of a row at the same height."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for x, y, words in re.findall(r'<text[^>]*?\bx="([\d.]+)"[^>]*?\by="([\d.]+)"[^>]*>([^<]*)</text>', text):
        rows.setdefault(float(y), []).append((float(x), html.unescape(words).replace("\xa0", " ")))
    out = []
    for y in sorted(rows):
        row = ""
        for x, words in sorted(rows[y]):
            row = row.ljust(round(x / 12.2)) + words
        out.append(row.rstrip())
    return tuple(out)


def read_picture(picture: Picture, dialect: Dialect) -> Reading:
    found = recognise(picture.view, Facts(canonical=False, echo=False), dialect)
    kind = found.type.value
    said = "idle" if found.constraints.get("idle") else f"{'raised' if _is_raised(found, dialect) else 'later'} {kind}"
    return Reading(picture, said, tuple(choice.label for choice in found.choices), found.excerpt)


def _is_raised(found: Finding, dialect: Dialect) -> bool:
    probe = ProbeAnswer(ProbeState.POLLING, echo=False, canonical=False)
    case = Situation(found, probe, Moment(SOON_S, 0.0, None), dialect, Patience(), looks=(ProbeState.POLLING,) * 2)
    return found.structural and decide_verdict(case)[0]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dialect")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--all", action="store_true", help="every picture, not only dialogs that would not be raised")
    given = parser.parse_args(arguments)
    dialect = load_dialect(given.dialect)
    pictures = [one for name, text in files_of(given.checkout) for one in pictures_in(name, text)]
    readings = [read_picture(one, dialect) for one in pictures]
    asking = [one for one in readings if one.picture.asks]
    missed = [one for one in asking if not one.said.startswith("raised")]
    for one in readings if given.all else missed:
        print(f"{one.said}: {one.picture.name}\n    {list(one.choices)} {one.question!r}")
    print(f"{len(pictures)} pictures, {len(asking)} dialogs by name, {len(asking) - len(missed)} raised at once.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
