"""Turns a finding into a prompt: its digest, the redacted text that leaves this machine, and the answer that a timer
is allowed to give.
"""

from __future__ import annotations

from _blake2 import blake2s
from collections.abc import Callable

from atlasbridge.core.detection.verdict import combine
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, Step
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, Evidence, Prompt, PromptType, Subject, SubjectKind, digest_text
from atlasbridge.core.prompt.redact import hidden_pieces, redact_rows
from atlasbridge.core.prompt.timer import asks_permission, is_bare_enter, may_permit, refusal_among
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, steady
from atlasbridge.core.recognition.finding import ASKS_ABROAD, Finding, cut, short, without_drawing
from atlasbridge.core.screen.frames import SIDES
from atlasbridge.core.screen.style import foreground
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

# Gemini's `... 10 hidden (Ctrl+O) ...` counts rows of its command, except where a frame comes next.
_LEFT_OUT = lazy(
    r"\b(\d{1,6}) (?:more |hidden )?(?:lines?|rows?)\b|\.{3} (\d{1,6}) hidden \(Ctrl\+O\) \.{3}\n(?!\s*[│┃╰╭])"
)
# In the lower border of a box Gemini counts the rows of the box, of which more can have left the screen.
_HIDDEN_ROWS = lazy(r"(?m)^\s*╰─+\.{3} (\d{1,6}) hidden \(Ctrl\+O\) \.{3}─")
# Codex: its question from its first row on, no row of a command, a blank row, and `[… 18 lines] ^a view all`.
_ALL_LEFT_OUT = lazy(
    r"\A\s*(?:Would you like|Do you want) to\b(?:(?!\n\s*[$>#%] )[\s\S])*"
    r"\n\s*\n\s*\[(?:…|\.{3}) (\d{1,6}) lines?\] [^\n]{0,24}\s*\Z"
)
_READS_SOMETHING = 0.80  # at most MED: a reader alone does not say what is asked
_WARNS = (1, 3, 9, 11)  # red and yellow
_SEEN = 40  # characters of the subject that the excerpt must show
RESTS = {"idle": True, "commands": True}  # typed text is run as a command, not taken as an answer


def picture_key(view: View, dialect: Dialect) -> str:
    """The screen without blinking and counting parts. Equal keys mean equal prompts."""
    text = "\n".join(line.rstrip() for line in steady(dialect, "\n".join(view.lines)).split("\n"))
    place = f"{view.row},{view.col}" if view.cursor_visible else ""
    return f"{text}\n{place}\n{int(view.alternate)}"


def digest_of(found: Finding, core: str | None = None) -> str:
    """The digest of every character of the question and its choices, but not of its position or highlight. The
    dialect has removed from `core` what changes by itself.
    """
    labels = "\0".join(f"{choice.label}\0{choice.detail}" for choice in found.choices)
    text = f"{found.core}\0{_asked_with(found)}" if core is None else core
    what = f"{found.type.value}\0{text}\0{labels}\0{bool(found.constraints.get('secret'))}"
    return blake2s(what.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def rewrapped(found: Finding) -> str:
    """The digest with each line break as one blank: the same when a window of another size wraps the dialog."""
    labels = [(choice, _flat(f"{choice.label} {choice.detail}".strip())) for choice in found.choices]
    flat = replace(found, choices=tuple(replace(choice, label=label, detail="") for choice, label in labels))
    return digest_of(flat, f"{_flat(found.core.replace(chr(0), ' '))}\0{_flat(_asked_with(found))}")


def _asked_with(found: Finding) -> str:
    """The text above a line that asks; "" for a dialog, whose core contains it, and for an input box."""
    return "" if found.structural or found.idle else found.question


def _flat(text: str) -> str:
    return " ".join(row.strip() for row in text.split("\n") if row.strip())


def prompt_of(
    found: Finding,
    view: View,
    evidence: list[Evidence],
    raw: bytes,
    secrets: tuple[str, ...],
    told: Subject | None = None,
    folder: str = "",
    hint: str = "",
) -> Prompt:
    """Build the prompt with the subject that a hook `told` and the `hint` that the tool gave in its output stream."""
    known = (*secrets, *hidden_pieces(view.text(), secrets))  # also in a label that was joined from several rows

    def safe(text: str) -> str:
        return escape_controls(redact_rows(text, known))

    excerpt, shown = safe(found.excerpt), view.text()  # redact before cutting: half a secret matches no pattern
    excerpt = excerpt if found.own else without_drawing(excerpt) or excerpt
    if not found.whole and _begins_above(excerpt, view):
        excerpt = f"…\n{excerpt}"
    excerpt = "\n".join([excerpt, *map(safe, _complaints(found, view))])
    subject = told or found.subject or _question(found)
    if subject is not None:
        shown_as, digest = safe(subject.text), digest_text(subject.text)
        subject = replace(subject, shown=shown_as, folder=subject.folder or folder, digest=digest)
    where = safe(subject.folder if subject and subject.folder else folder)
    if told and "".join(told.text.split()) not in "".join(found.excerpt.split()):
        asks = _asks_above(safe(found.question or found.excerpt), told)
        said = _said(subject, asks or excerpt, safe)
        above = short(_placed(f"{asks}\n{said}", where), EXCERPT_LIMIT)
        excerpt = above if asks else _headed(_placed(said, where), excerpt)
        shown = f"{told.text}\n\n{shown}"
    elif found.own:
        excerpt = _shortened(_placed(excerpt, where) if found.permission else excerpt)
        if subject and told and subject.shown[:_SEEN] not in excerpt:  # other text of the dialog has displaced it
            excerpt = _headed(_placed(_said(subject, excerpt, safe), where), excerpt)
    guess = _nothing_is_known(found, evidence)
    score = combine(evidence) if evidence else found.score
    return Prompt(
        type=PromptType.TYPE_UNKNOWN if guess else found.type,
        score=min(score, _READS_SOMETHING) if guess else score,
        excerpt=cut(excerpt, context=not found.structural),
        screen=safe(shown),
        choices=tuple(
            replace(choice, label=safe(choice.label), detail=safe(choice.detail)) for choice in found.choices
        ),
        constraints={**found.constraints, **(RESTS if found.orders else {}), **_missing(found, told)},
        evidence=tuple(evidence),
        safe_default="" if _is_cut(found, view) else safe_default(found),
        digest=digest_of(found),
        line_mode=found.line_mode,
        text_steps=found.text_steps,
        end_steps=found.end_steps or ((Step(ENTER),) if guess and (found.line_mode or not view.lit) else ()),
        words_end=found.words_end,
        fields=found.fields,
        multiline=found.multiline,
        raw=raw,
        subject=subject,
        question=safe(found.question or found.excerpt),
        whole=found.whole and not found.abridged,
        says=safe(hint),
        context_rows=_context_rows(found) if subject is None or subject.kind is SubjectKind.QUESTION else 0,
    )


def _nothing_is_known(found: Finding, evidence: list[Evidence]) -> bool:
    """Whether a program reads, and neither the tool nor a pattern says what for: the person must decide."""
    told = any(item.signal == "structured" for item in evidence)
    plain = found.type is PromptType.TYPE_FREE_TEXT and found.rule in ("bare-line", "silent") and not found.fields
    rests = found.orders or found.idle or found.constraints.get("secret")
    return plain and not told and not rests and not found.constraints.get("default")


def _context_rows(found: Finding) -> int:
    """How many rows above the line that asks are earlier output: useful to read, but not part of the question."""
    if found.structural or not found.core or not found.question.endswith(found.core):
        return 0
    return found.question.count("\n") - found.core.count("\n")


def _missing(found: Finding, told: Subject | None) -> dict[str, int]:
    """How many lines the tool says it left out, unless a hook sent them."""
    if told is not None or (found.whole and not found.abridged):
        return {}
    counts = [int(one or other) for one, other in _LEFT_OUT.findall(found.question or found.core)]
    if any(counts):
        return {"missing_lines": sum(counts)}
    rows = [int(count) for count in _HIDDEN_ROWS.findall(found.question or found.core)]
    return {"hidden_rows": sum(rows)} if any(rows) else {}


def rows_left_out(question: str) -> int:
    """How many rows a dialog leaves out that shows nothing of its command."""
    found = _ALL_LEFT_OUT.match(question)
    return int(found[1]) if found else 0


def _question(found: Finding) -> Subject | None:
    """A question with nothing above it is its own subject."""
    plain = found.type in (PromptType.TYPE_YES_NO, PromptType.TYPE_CONFIRM_ENTER, PromptType.TYPE_MULTIPLE_CHOICE)
    if not (plain and found.alone and found.whole) or found.bare or found.constraints.get("secret"):
        return None
    return Subject(SubjectKind.QUESTION, found.question, complete=True)


def _said(subject: Subject | None, excerpt: str, safe: Callable[[str], str]) -> str:
    """The tool's subject, with the files of an edit that the last line of the question does not name."""
    if subject is None or subject.kind is not SubjectKind.EDIT:
        return subject.shown if subject else ""
    question = excerpt.rpartition("\n")[2]
    unnamed = [safe(path) for path in subject.targets if path.rpartition("/")[2] not in question]
    return "\n".join([", ".join(unnamed), subject.shown]) if unnamed else subject.shown


def _asks_above(dialog: str, told: Subject) -> str:
    """The question of a dialog that shows its subject below the question; "" for any other dialog."""
    rows = [row for row in dialog.split("\n") if any(map(str.isalnum, row))]
    signed = ["".join(line.split()) for line in told.text.split("\n")]  # without the sign before each line
    lines = [line[1:] for line in signed if len(line) > 3]
    about = [at for at, row in enumerate(rows) if any(line in "".join(row.split()) for line in lines)]
    return "\n".join(rows[: about[0]]) if about and about[-1] == len(rows) - 1 else ""


def _is_cut(found: Finding, view: View) -> bool:
    """Whether a part of its text, or of the text right above it, is missing: it possibly asked for more."""
    first = view.line_start(max(0, found.row - numbers.CONTEXT_ROWS))
    return any(row >= first for row in view.cut)


def _begins_above(excerpt: str, view: View) -> bool:
    """Whether its first row is the first one on the screen, and more has left it above."""
    top = next((line for line in view.lines if line.strip()), "")
    return view.scrolled > 0 and excerpt.partition("\n")[0].strip() in top


def _complaints(found: Finding, view: View) -> list[str]:
    """Warning words right below a line to type into: why it is asked again."""
    below = range(view.row + 1, min(view.row + 3, len(view.lines))) if not found.structural else range(0)
    rows = [(at, len(view.lines[at]) - len(view.lines[at].lstrip(f" {SIDES}└"))) for at in below]
    warns = [view.lines[at][col:].strip() for at, col in rows if foreground(view.style(at, col)) in _WARNS]
    return [row for row in warns if any(map(str.isalnum, row))]


def _headed(said: str, excerpt: str) -> str:
    """The subject first, cut so that the last line of the question fits below it."""
    question = excerpt.rpartition("\n")[2]
    room = EXCERPT_LIMIT - len(question) - 1
    if room < EXCERPT_LIMIT // 4:
        return cut(excerpt)
    return f"{short(said, room)}\n{question}"


def _placed(excerpt: str, folder: str) -> str:
    """The excerpt with the folder below its first line, unless the dialog names it."""
    first, _, rest = excerpt.partition("\n")
    return "\n".join(part for part in (first, f"in {folder}", rest) if part) if folder not in excerpt else excerpt


def _shortened(excerpt: str) -> str:
    """Rows at its end that contain only drawing, such as a piece of a scroll bar, are dropped first."""
    rows = excerpt.split("\n")
    while len("\n".join(rows)) > EXCERPT_LIMIT and not any(map(str.isalnum, rows[-1])):
        rows.pop()
    return cut("\n".join(rows))


def safe_default(found: Finding) -> str:
    """The answer that a timer is allowed to give: a refusal, or Enter for a bare "press Enter to continue".

    There is none where the answer could agree to something, where a shell could read it, or where the keys for a
    refusal are uncertain. A timer that does nothing does no harm.
    """
    if found.constraints.get("secret") or found.idle or found.bare or found.rule == ASKS_ABROAD:
        return ""
    if found.type is PromptType.TYPE_CONFIRM_ENTER:
        return "enter" if found.alone and found.whole and is_bare_enter(found.question or found.excerpt) else ""
    if found.type in (PromptType.TYPE_FREE_TEXT, PromptType.TYPE_UNKNOWN):
        return ""
    yes_no, asked = found.type is PromptType.TYPE_YES_NO, found.question or found.core
    asks = asks_permission(asked) if yes_no else may_permit(asked, found.choices)
    return refusal_among(found.choices, sure=yes_no or found.own) if found.permission or asks else ""
