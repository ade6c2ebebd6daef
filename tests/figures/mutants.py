"""Recorded dialogs, each changed in one respect: another mark, blank rows, other words, another box, another width.

A dialog that is changed so is one of a tool that nobody has seen.  It must still be read, or be raised as `unknown`:
never missed, and never taken for something else.  `docs/detection.md` counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import OutputReceived, ProbeAnswer, ProbeState, RaisePrompt
from atlasbridge.core.detection.verdict import Moment, Patience, Situation, decide_verdict
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.frames import SIDES, find_frames
from atlasbridge.core.screen.style import is_faded, render_sgr
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace
from atlasbridge.lab.replay import Player
from tests.figures.ablate import Picture, pictures_of

LATEST_S = 10.6  # by then a person is asked, whatever draws
# One of each family that Unicode has: arrows, triangles, angles, ticks, bullets, stars, and what keyboards have.
MARKS = "→⇒⟶➔➜➤➢⮕↦⇨☛☞▷▹▻▸►▶❯❱❭❩⟩〉›»>✓✔☑◉●◆◈■▪•∙*+=~✦✱★❖"
OTHER_WORDS = {
    "German": ("Ja, ausführen", "Ja, immer erlauben", "Nein, abbrechen", "Etwas anderes", "Später"),
    "Polish": ("Tak, wykonaj", "Tak, zawsze", "Nie, przerwij", "Coś innego", "Później"),
    "Chinese": ("是，允许一次", "是，总是允许", "否，取消", "其他", "以后再说"),
    "Arabic": ("نعم، مرة واحدة", "نعم، دائما", "لا، إلغاء", "شيء آخر", "لاحقا"),
}
MORE_WORDS = "and a few more words than the row had room for, " * 4 + "which is all"
EXPLAINS = "Runs it now, and asks again the next time"


@dataclass(frozen=True, slots=True)
class Dialog:
    """A list on a picture, as it is read there; `rows` and `cols`: where each of its labels begins."""

    picture: Picture
    dialect: Dialect
    found: Finding
    rows: tuple[int, ...]
    cols: tuple[int, ...]

    @property
    def view(self) -> View:
        return self.picture.view

    @property
    def current(self) -> int:
        return next((at for at, choice in enumerate(self.found.choices) if choice.default), -1)

    @property
    def labels(self) -> list[str]:
        return [choice.label for choice in self.found.choices][: len(self.rows)]


@dataclass(frozen=True, slots=True)
class Mutant:
    view: View
    labels: tuple[str, ...] = ()  # where they are others than the dialog's own


@dataclass(frozen=True, slots=True)
class Outcome:
    mutation: str
    case: str
    said: str  # "read", "unknown", "misread ...", "missed"


def dialogs_of(corpus: Path) -> Iterator[Dialog]:
    """Every recorded list below each other, as its tool's and as a stranger's."""
    seen = set[tuple[str, tuple[str, ...]]]()
    for picture in pictures_of(corpus):
        dialect = load_dialect(picture.tool)
        found = recognise(picture.view, picture.facts, dialect)
        dialog = _placed(picture, dialect, found)
        if dialog and (picture.tool, picture.view.lines) not in seen:
            seen.add((picture.tool, picture.view.lines))
            yield dialog


def _placed(picture: Picture, dialect: Dialect, found: Finding) -> Dialog | None:
    choices = [choice for choice in found.choices if choice.value != "cancel"]
    lists = len(choices) >= 2 and found.structural and found.foot >= 0 and not found.line_mode
    rows: list[int] = []
    cols: list[int] = []
    below = len(picture.view.lines)
    for choice in reversed(choices if lists else []):
        begin = choice.label[:16]
        places = [(at, line.find(begin)) for at, line in enumerate(picture.view.lines[:below]) if begin in line]
        if not places:
            return None
        below = places[-1][0]
        rows.insert(0, places[-1][0])
        cols.insert(0, places[-1][1])
    if not rows or not any(choice.default for choice in choices):
        return None
    return Dialog(picture, dialect, replace(found, choices=tuple(choices)), tuple(rows), tuple(cols))


# ---------------------------------------------------------------- mutations


def _set_row(view: View, at: int, text: str, styles: tuple[int, ...] | None = None) -> View:
    lines, looks = list(view.lines), list(view.styles)
    lines[at] = text.rstrip()
    if at < len(looks) and styles is not None:
        looks[at] = styles
    return replace(view, lines=tuple(lines), styles=tuple(looks))


def _insert(view: View, at: int, text: str, style: int = 0) -> View:
    """With one more row; the screen stays as high as it is: an empty row at its foot goes, else its first."""
    lines, looks = list(view.lines), [*view.styles, *(() for _ in range(len(view.lines) - len(view.styles)))]
    lines.insert(at, text.rstrip())
    looks.insert(at, (style,) * view.cols)
    row = view.row + (view.row >= at)
    if not lines[-1].strip() and row < len(lines) - 1:
        lines.pop()
        looks.pop()
        return replace(view, lines=tuple(lines), styles=tuple(looks), row=row, joined=frozenset(), before=None)
    return replace(
        view, lines=tuple(lines[1:]), styles=tuple(looks[1:]), row=max(0, row - 1), joined=frozenset(), before=None,
        scrolled=view.scrolled + 1,
    )  # fmt: skip


def _blank_like(line: str) -> str:
    """An empty row in the same frame."""
    return "".join(char if char in SIDES or char == "|" else " " for char in line)


def other_marks(dialog: Dialog) -> Iterator[Mutant]:
    at = dialog.current
    line, col = dialog.view.lines[dialog.rows[at]], dialog.cols[at]
    before = line[:col].rstrip()
    had = before[-1:] if before and not before[-1:].isalnum() else ""
    if not had or had in ".)]":
        had = next((char for char in reversed(line[:col]) if not char.isalnum() and char not in " .)]([:│┃|"), "")
    if not had or had in SIDES:
        return
    place = line.rindex(had, 0, col)
    for mark in MARKS:
        yield Mutant(_set_row(dialog.view, dialog.rows[at], line[:place] + mark + line[place + 1 :]))


def blank_rows(dialog: Dialog) -> Iterator[Mutant]:
    view, moved = dialog.view, 0
    for before, row in zip(dialog.rows, dialog.rows[1:], strict=False):
        if row - before == 1:
            grown = _insert(view, row + moved, _blank_like(dialog.view.lines[row]))
            moved += 1 - (grown.scrolled - view.scrolled)
            view = grown
    if view is not dialog.view:
        yield Mutant(view)


def descriptions(dialog: Dialog) -> Iterator[Mutant]:
    """The lit choice gains one: it comes and goes with the highlight."""
    row, col = dialog.rows[dialog.current], dialog.cols[dialog.current]
    frame = _blank_like(dialog.view.lines[row])
    faded = any(is_faded(dialog.view.style(*place)) for place in zip(dialog.rows, dialog.cols, strict=True))
    for deeper, style in ((2, 2), (2, 0)) if faded else ((0, 2), (2, 2), (2, 0)):
        start = col + deeper
        text = f"{frame[:start]:<{start}}{EXPLAINS}{frame[start + len(EXPLAINS) :]}"
        if len(text) <= dialog.view.cols and not frame[start : start + len(EXPLAINS)].strip():
            yield Mutant(_insert(dialog.view, row + 1, text, style))


def more_boxes(dialog: Dialog) -> Iterator[Mutant]:
    """A small one between the question and the list, and one around all of it."""
    view, top = dialog.view, dialog.rows[0]
    frame = _blank_like(view.lines[top])
    begin = max(dialog.cols[0], 2)
    for text in ("╰──────────────╯", "│ rm -rf build │", "╭──────────────╮"):
        grown = _insert(view, top, f"{frame[:begin]:<{begin}}{text}{frame[begin + len(text) :]}")
        view, top = grown, top - (grown.scrolled - view.scrolled)
    yield Mutant(view)
    if any(one.top < dialog.rows[0] < one.bottom for one in find_frames(dialog.view.lines)):
        return
    first, last = max(0, dialog.found.row), dialog.rows[-1]
    wide = min(dialog.view.cols, max(map(len, dialog.view.lines[first : last + 1])) + 6)
    if wide > dialog.view.cols or max(map(len, dialog.view.lines[first : last + 1])) > dialog.view.cols - 4:
        return
    lines, looks = list(dialog.view.lines), list(dialog.view.styles)
    for at in range(first, last + 1):
        lines[at] = f"│ {lines[at]:<{wide - 4}} │"
        if at < len(looks):
            looks[at] = (0, 0, *looks[at])
    boxed = replace(dialog.view, lines=tuple(lines), styles=tuple(looks), before=None)
    boxed = _insert(boxed, last + 1, f"╰{'─' * (wide - 2)}╯")
    yield Mutant(_insert(boxed, first - (boxed.scrolled - dialog.view.scrolled), f"╭{'─' * (wide - 2)}╮"))


def wrapped_labels(dialog: Dialog) -> Iterator[Mutant]:
    """A label has more words than its row has room for: the tool goes on in the next row, where the label began."""
    for at in (0, len(dialog.rows) - 1):
        row, col = dialog.rows[at], dialog.cols[at]
        line, look = dialog.view.lines[row], dialog.view.style(row, col)
        edge = line.rstrip()[-1:] in SIDES
        end = len(line.rstrip("".join(SIDES) + " " if edge else " ")) if edge else dialog.view.cols
        nested = edge and sum(char in SIDES for char in line[end:]) > 1
        if nested or line[col + len(dialog.labels[at]) :].strip()[:1] in (">", "]"):
            continue  # a box in a box, or a button, has no room for it
        end = line.index(next(iter(char for char in line[end:] if char in SIDES)), end) - 1 if edge else end
        label, words = dialog.labels[at], MORE_WORDS.split()
        while words and col + len(label) + 1 + len(words[0]) <= end:
            label += f" {words.pop(0)}"
        frame = f"{'':<{end}}{line[end:]}" if edge else ""
        first = f"{line[:col]}{label}"
        styles = (*dialog.view.styles[row][:col], *(look,) * (end - col)) if row < len(dialog.view.styles) else None
        view = _set_row(dialog.view, row, f"{first}{frame[len(first) :]}", styles)
        rest = f"{_blank_like(line[:col]):<{col}}{' '.join(words[:4])}"
        yield Mutant(_insert(view, row + 1, f"{rest}{frame[len(rest) :]}", look))


def other_languages(dialog: Dialog) -> Iterator[Mutant]:
    for words in OTHER_WORDS.values():
        view = dialog.view
        for at, (row, col) in enumerate(zip(dialog.rows, dialog.cols, strict=True)):
            label, line = dialog.labels[at], view.lines[row]
            end = line.find("  ", col) if "  " in line[col:] else len(line)
            new = words[at % len(words)] + " " * (at // len(words))
            kept = line[min(end, col + len(label)) :] if end >= col + len(label) else line[end:]
            view = _set_row(view, row, f"{line[:col]}{new:<{min(end - col, len(label))}}{kept}")
        if len(dialog.rows) <= len(words):
            yield Mutant(view, tuple(words[: len(dialog.rows)]))


def other_widths(dialog: Dialog) -> Iterator[Mutant]:
    """A wider window, and all of it further to the right."""
    yield Mutant(replace(dialog.view, cols=dialog.view.cols + 60))
    if max(map(len, dialog.view.lines)) + 4 <= dialog.view.cols:
        lines = tuple(f"    {line}".rstrip() for line in dialog.view.lines)
        looks = tuple((0, 0, 0, 0, *styles) for styles in dialog.view.styles)
        yield Mutant(replace(dialog.view, lines=lines, styles=looks, col=dialog.view.col + 4, before=None))


def other_numbers(dialog: Dialog) -> Iterator[Mutant]:
    for form in ("{0}) ", "({0}) ", "[{0}] ", "{0}: ", "{0} ", "{1}) ", "({1}) "):
        view = dialog.view
        for at, (row, col) in enumerate(zip(dialog.rows, dialog.cols, strict=True)):
            line, number = view.lines[row], f"{at + 1}. "
            if not line[:col].endswith(number):
                return
            new = form.format(at + 1, "abcdefghij"[at])
            start = col - len(number)
            rest = line[col:]
            if len(new) > 3:  # what stands behind it, such as the side of a frame, stays where it is
                gap = rest.find("  ")
                rest = rest[:gap] + rest[gap + len(new) - 3 :] if gap >= 0 else rest
            elif "  " in rest:
                rest = rest.replace("  ", "  " + " " * (3 - len(new)), 1)
            view = _set_row(view, row, f"{line[:start]}{new}{rest}"[: dialog.view.cols])
        yield Mutant(view)


MUTATIONS: dict[str, Callable[[Dialog], Iterator[Mutant]]] = {
    "another mark": other_marks,
    "blank rows": blank_rows,
    "a description": descriptions,
    "more boxes": more_boxes,
    "a wrapped label": wrapped_labels,
    "another language": other_languages,
    "another width": other_widths,
    "other numbers": other_numbers,
}


def judge_mutants(dialogs: Sequence[Dialog]) -> Iterator[Outcome]:
    for dialog in dialogs:
        for name, mutate in MUTATIONS.items():
            for mutant in mutate(dialog):
                yield Outcome(name, dialog.picture.case, judge_mutant(dialog, mutant))


def judge_mutant(dialog: Dialog, mutant: Mutant) -> str:
    found = recognise(mutant.view, dialog.picture.facts, dialog.dialect)
    probe = ProbeAnswer(ProbeState.POLLING, echo=False, canonical=False)
    case = Situation(found, probe, Moment(LATEST_S, 0.0, None), dialog.dialect, Patience())
    if not decide_verdict(replace(case, looks=(ProbeState.POLLING,) * 2))[0]:
        return "missed"
    if found.type is PromptType.TYPE_UNKNOWN:
        return "unknown"
    labels = [choice.label for choice in found.choices if choice.value != "cancel"]
    wanted = mutant.labels or dialog.labels
    begins = [want[:12].strip() in have for want, have in zip(wanted, labels, strict=False)]
    if len(labels) != len(wanted) or not all(begins):
        return f"misread as {found.rule} {labels}"
    lit = next((at for at, choice in enumerate(found.choices) if choice.default), -1)
    return "read" if lit in (dialog.current, -1) else f"misread: {lit} is lit instead of {dialog.current}"


# ---------------------------------------------------------------- words of work


def drawn(view: View) -> bytes:
    """The bytes that draw a picture."""
    out = ["\x1b[?1049h" if view.alternate else "", "\x1b[?25l\x1b[2J"]
    for at, line in enumerate(view.lines):
        styles = view.styles[at] if at < len(view.styles) else ()
        out.append(f"\x1b[{at + 1};1H")
        look = 0
        for col, char in enumerate(line):
            wanted = styles[col] if col < len(styles) else 0
            if wanted != look:
                out.append(f"\x1b[{render_sgr(wanted)}m")
                look = wanted
            out.append(char)
        out.append("\x1b[m")
    out.append(f"\x1b]2;{view.title}\x1b\\\x1b[{view.row + 1};{view.col + 1}H")
    return "".join([*out, "\x1b[?25h" if view.cursor_visible else ""]).encode()


def judge_words_of_work(dialog: Dialog, words: Sequence[str]) -> Iterator[Outcome]:
    """The tool's own words of work in each row of its dialog, and in each row above it, behind what stands there."""
    for word in words:
        for row in range(dialog.rows[-1] + 1):
            if row not in dialog.rows and len(dialog.view.lines[row]) + len(word) < dialog.view.cols:
                changed = f"{dialog.view.lines[row]} {word}" if dialog.view.lines[row].strip() else f"  {word}"
                view = _set_row(dialog.view, row, changed)
                yield Outcome("words of work", dialog.picture.case, _raised(dialog, view))


def _raised(dialog: Dialog, view: View) -> str:
    detector = Detector(dialog.dialect, len(view.lines), view.cols)
    player = Player(detector, ProbeAnswer(ProbeState.POLLING, echo=False, canonical=False))
    heard = [command for _, command in player.tell(OutputReceived(drawn(view)), 0.0)]
    heard += [command for _, command in player.pass_time(LATEST_S)]
    asked = [one.prompt for one in heard if isinstance(one, RaisePrompt) and not one.prompt.idle]
    return "read" if any(one.choices for one in asked) else "unknown" if asked else "missed"


def render_mutants(outcomes: Sequence[Outcome]) -> str:
    rows = ["| changed | mutants | read | unknown | misread | missed |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys(one.mutation for one in outcomes):
        count = Counter(one.said.split()[0].rstrip(":") for one in outcomes if one.mutation == name)
        figures = " | ".join(str(count[said]) for said in ("read", "unknown", "misread", "missed"))
        rows.append(f"| {name} | {count.total()} | {figures} |")
    return "\n".join(rows)
