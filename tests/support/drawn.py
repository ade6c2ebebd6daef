"""Dialogs as the known tools draw them, about any text: what was drawn is known to the last cell.

`draw` gives the bytes; what a person must then read, and what the answers are called, stands beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from textwrap import wrap as wrap_words

from atlasbridge.core.recognition.finding import Facts
from atlasbridge.core.screen.width import width

Fold = Callable[[str, int], list[str]]
Drawing = tuple[bytes, list[str], list[str], Facts]  # the bytes, the rows of the text, the labels, what the probe says

RAW = Facts(canonical=False, echo=False)
LINE = Facts(canonical=True, echo=True, reading=True)
WORDS = (
    "rm", "-rf", "/", "~", "/tmp/x", "curl", "-s", "http://x/y", "|", "sh", "||", "&&", ";", ">", ">>", "<<EOF",
    "2>&1", "'a b'", '"$HOME"', "`id`", "$(id)", "\\", "\\n", "{", "}", "[", "]", "(", ")", "git", "push",
    "--force", "&", "日本語", "ü", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "a  b", "  ", "--", "#", "*", "?", "%", "│", "─",
    "║", "┃", "█", "●", "❯", "›", "1.", "2)", "Yes", "No", "[y/N]", "EOF",
)  # fmt: skip
LINES = (
    "}", "\\", "&&", "EOF", "|", "| sh", "$ ls", "> ", "❯ 1. Yes", "  2. No", "› 1. Yes, proceed (y)", "1. Yes",
    "0. No", "3. Maybe", "Do you want to proceed?", "Would you like to run the following command?",
    "Proceed? [y/N]", "Press Enter to continue", "│ x │", "╭────────────────╮", "│ touched        │",
    "╰────────────────╯", "+----------+", "| a  |  b  |", "|____|_____|", "─────────────────────────",
    "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━", "╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌", "- - -", "│", "┃", "  ┃  △ Permission required",
    "◆  Pick", "●", "○ a", "<Yes>   <No>", "[ OK ]", "Esc to cancel", "Allow once", "Password:", "    indented",
    "a  b   c", "日本語の行", "cat <<'EOF' | sh", "Enter choice: 1",
)  # fmt: skip


@dataclass
class Drawn:
    """`rows` is what a person must be able to read, in this order; `command` what the tool would run; `question` the
    dialog's own words, which stand above or below the rows."""

    tool: str
    facts: Facts
    data: bytes
    rows: list[str]
    command: str
    labels: list[str] = field(default_factory=list)
    screen_rows: int = 40
    cols: int = 80
    dialect: str = "generic"
    question: str = ""


def columns(text: str) -> int:
    return sum(width(char) for char in text)


def folded(line: str, room: int) -> list[str]:
    """A line in pieces of at most `room` columns, as a tool cuts it that knows no words."""
    out, begun, taken = [], "", 0
    for char in line:
        if taken + width(char) > room:
            out.append(begun)
            begun, taken = "", 0
        begun += char
        taken += width(char)
    return [*out, begun]


def worded(line: str, room: int) -> list[str]:
    """The same between words, where it has words."""
    if columns(line) <= room or columns(line) != len(line):
        return folded(line, room)
    lead = line[: len(line) - len(line.lstrip(" "))][: room // 2]
    return wrap_words(line.strip(" "), room - len(lead), initial_indent=lead, drop_whitespace=True) or [""]


def nasty_text(rng: Random, most: int = 3000) -> str:
    """A command or a question: pipes, quotes, here-documents, wide characters, what looks like frames and menus."""
    lines: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8, 30))):
        if lines and rng.random() < 0.12:
            lines += [""] * rng.choice((1, 1, 2, 5))  # what belongs together is often set apart
        if rng.random() < 0.35:
            lines.append(rng.choice(LINES))
        else:
            lines.append(" ".join(rng.choice(WORDS) for _ in range(rng.choice((1, 3, 6, 20)))))
    text = "\n".join(line.rstrip() for line in lines)[: rng.choice((most, most, 200, 60))].strip()
    return text if any(char.isalnum() for char in text) else f"echo {text}".strip()


def pad(text: str, room: int) -> str:
    return text + " " * (room - columns(text))


def draw(tool: str, text: str, cols: int, rng: Random) -> Drawn:
    fold = rng.choice((folded, worded))
    data, rows, labels, facts = DRAWERS[tool](text, cols, fold)
    dialect = tool if tool in ("claude", "codex", "gemini", "opencode") else "generic"
    height = rng.choice((24, 40, 100))
    if tool in ("opencode", "framed"):  # they draw within their screen
        height = max(height, len(rows) + 12)
    return Drawn(tool, facts, data, rows, text, labels, height, cols, dialect, QUESTIONS.get(tool, ""))


def _claude(text: str, cols: int, fold: Fold) -> Drawing:
    """Several rows have a bar in front of each."""
    rows = [row for line in text.split("\n") for row in fold(line, cols - 2)]
    if len(rows) > 1:
        rows = [f"│ {row}".rstrip() for line in text.split("\n") for row in fold(line, cols - 4)]
    labels = ["Yes", "Yes, and never ask for: a | b", "No"]
    lines = ["─" * cols, " Bash command", " What it is for", "╌" * cols, *(f" {row}" for row in rows), "╌" * cols]
    lines += [" Do you want to proceed?", f" ❯ 1. {labels[0]}", f"   2. {labels[1]}", f"   3. {labels[2]}", ""]
    lines += [" Esc to cancel · Tab to amend"]
    return _ended(lines), rows, labels, RAW


def _codex(text: str, cols: int, fold: Fold) -> Drawing:
    rows = [row for line in text.split("\n") for row in fold(line, cols - 6)]
    labels = ["Yes, proceed (y)", "No, and tell Codex (esc)"]
    lines = ["  Would you like to run the following command?", "", "  Environment: local", ""]
    lines += [("  $ " if at == 0 else "  ") + row for at, row in enumerate(rows)]
    lines += ["", f"› 1. {labels[0]}", f"  2. {labels[1]}", "", "  Press enter to confirm or esc to cancel"]
    return _ended(lines), rows, labels, RAW


def _gemini(text: str, cols: int, fold: Fold) -> Drawing:
    room = cols - 8
    rows = [row for line in text.split("\n") for row in fold(line, room)]
    labels = ["Allow once", "Allow for this session", "No, suggest changes (esc)"]
    inner = ["╭" + "─" * (cols - 6) + "╮", *(f"│ {pad(row, room)} │" for row in rows), "╰" + "─" * (cols - 6) + "╯"]
    inner = [pad("? Shell  it", cols - 4), *inner, "Allow execution of [Shell]?", ""]
    inner += [f"● 1. {labels[0]}", f"  2. {labels[1]}", f"  3. {labels[2]}"]
    framed = [
        "╭" + "─" * (cols - 2) + "╮",
        *(f"│ {pad(row, cols - 4)} │" for row in inner),
        "╰" + "─" * (cols - 2) + "╯",
    ]
    return _ended(framed), rows, labels, RAW


def _opencode(text: str, cols: int, fold: Fold) -> Drawing:
    rows = [row for line in text.split("\n") for row in fold(line, cols - 10)]
    labels = ["Allow once", "Allow always", "Reject"]
    inner = ["  △ Permission required", "    # Shell command", ""]
    inner += [("  $ " if at == 0 else "    ") + row for at, row in enumerate(rows)]
    inner += ["", "", "   \x1b[44mAllow once\x1b[49m   Allow always   Reject"]
    return _ended([f"  ┃{row}" for row in inner]), rows, labels, RAW


def _yes_no(text: str, cols: int, fold: Fold) -> Drawing:
    """The terminal itself wraps: every line arrives as it was written."""
    lines = text.split("\n")
    return "\r\n".join([*lines, "Run this command? [y/N] "]).encode(), lines, [], LINE


def _numbered(text: str, cols: int, fold: Fold) -> Drawing:
    lines = text.split("\n")
    drawn = [*lines, "Really?", "", " 1) Yes, all of it", " 2) No", "", "Enter choice: "]
    return "\r\n".join(drawn).encode(), lines, ["Yes, all of it", "No"], LINE


def _framed(text: str, cols: int, fold: Fold) -> Drawing:
    room = cols - 4
    rows = [row for line in text.split("\n") for row in fold(line, room)]
    inner = [*rows, "", "   \x1b[7m<Yes>\x1b[m        <No>"]
    lines = ["┌" + "─" * (cols - 2) + "┐"]
    lines += [f"│ {row}{' ' * (room - columns(_plain(row)))} │" for row in inner]
    return _ended([*lines, "└" + "─" * (cols - 2) + "┘"], alternate=True), rows, ["Yes", "No"], RAW


def _plain(row: str) -> str:
    return row.replace("\x1b[7m", "").replace("\x1b[m", "")


def _ended(lines: list[str], alternate: bool = False) -> bytes:
    begin = "\x1b[?1049h\x1b[H" if alternate else ""
    return (begin + "\r\n".join(lines) + "\x1b[?25l").encode()


DRAWERS = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "yes-no": _yes_no,
    "numbered": _numbered,
    "framed": _framed,
}
QUESTIONS = {
    "claude": "Do you want to proceed?",
    "codex": "Would you like to run the following command?",
    "gemini": "Allow execution of [Shell]?",
    "opencode": "Permission required",
    "yes-no": "Run this command? [y/N]",
    "numbered": "Really?",
}
ABOVE = frozenset({"codex", "opencode"})  # whose question stands there
