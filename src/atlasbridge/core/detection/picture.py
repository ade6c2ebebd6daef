"""From a finding to a prompt: what identifies it, what leaves this machine, and what a timer may answer."""

from __future__ import annotations

from _blake2 import blake2s  # as hashlib has it, but without loading OpenSSL into every session

from atlasbridge.core.detection.signals import combine
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, Evidence, Prompt, PromptType
from atlasbridge.core.prompt.redact import redact_rows
from atlasbridge.core.recognition.dialect import Dialect, compiled, steady
from atlasbridge.core.recognition.finding import CONTEXT_ROWS, Finding, cut
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace
from atlasbridge.core.visible import visible

# Compiled when first used.
_PLAIN_NO = r"\W*(?:no|n|cancel|abort|reject|deny|decline|refuse|none)\W*(?:\(\w+\))?\W*"
_NEGATED = r"\b(?:don['’]?t|do not|not)\b"
_NO_BUT = (  # refusals that go on all the same, or lose something: no timer says them
    r"\b(?:continue|proceed|go on|anyway|without saving|discard|delete|deploy|allow|approve|accept|force|overwrite"
    r"|and)\b"
)
_NOT_STOPPING = (
    r"\W*(?:don['’]?t|do not|never)\b.*\b(?:stop|cancel|abort|save|keep|exit|quit|wait|verify|check|back ?up)\b"
)
_ASKS_TO_STOP = (
    r"(?:^|[.:!]\s+|\b(?:want|like|wish) to\s+|\b(?:should i|shall (?:i|we)|really)\s+)(?:abort|cancel)\b"
    r"|\by\W+to (?:abort|cancel)\b"
)
_OR_ABORT = r"ctrl|\^c\b|\b(?:abort|cancel|any other key)\b"
_CONSENT = r"(?:y|yes|j|ja|s|si|sí|sim|o|oui|ok|okay|true|on|д|да|tak|hai|はい|是)"
_ENTER_AGREES = rf"[\[(](?:default(?: is|s to)?:?\s*)?{_CONSENT}[\])]\W*$|\bdefault(?: is|s to)?:?\s*{_CONSENT}\b"
_ASKS_WHAT = r"\b(?:what|which|where|who|whose|when|how|why)\b"


def picture_key(view: View, dialect: Dialect) -> str:
    """The screen without what blinks and counts by itself: equal keys, equal prompts."""
    text = "\n".join(line.rstrip() for line in steady(dialect, "\n".join(view.lines)).split("\n"))
    place = f"{view.row},{view.col}" if view.cursor_visible else ""
    return f"{text}\n{place}\n{int(view.alternate)}"


def digest_of(found: Finding) -> str:
    """Where it stands, what is highlighted and how lines wrap do not change which prompt it is."""
    labels = "\0".join(choice.label for choice in found.choices)
    what = f"{found.type.value}\0{''.join(found.core.split())}\0{labels}\0{bool(found.constraints.get('secret'))}"
    return blake2s(what.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def prompt_of(
    found: Finding,
    view: View,
    evidence: list[Evidence],
    raw: bytes,
    secrets: tuple[str, ...],
    said: str,
    folder: str = "",
) -> Prompt:
    def safe(text: str) -> str:
        return visible(redact_rows(text, secrets))

    excerpt, shown = safe(found.excerpt), view.text()  # redacted before it is cut: half a secret is none of its shapes
    if said and "".join(said.split()) not in "".join(excerpt.split()):
        excerpt = _headed(safe(said), excerpt)
    elif found.own:
        excerpt = _shortened(_placed(excerpt, safe(folder)) if found.permission else excerpt)
    if said and "".join(said.split()) not in "".join(shown.split()):
        shown = f"{said}\n\n{shown}"
    return Prompt(
        type=found.type,
        score=combine(evidence) if evidence else found.score,
        excerpt=cut(excerpt),
        screen=safe(shown),
        choices=tuple(replace(choice, label=safe(choice.label)) for choice in found.choices),
        constraints=dict(found.constraints),
        evidence=tuple(evidence),
        safe_default="" if _is_cut(found, view) else safe_default(found),
        digest=digest_of(found),
        line_mode=found.line_mode,
        text_steps=found.text_steps,
        end_steps=found.end_steps,
        words_end=found.words_end,
        multiline=found.multiline,
        raw=raw,
    )


def _is_cut(found: Finding, view: View) -> bool:
    """Whether some of its text, or of what stands right above it, is gone: it may have asked for something else."""
    first = view.line_start(max(0, found.row - CONTEXT_ROWS))
    return any(row >= first for row in view.cut)


def _headed(said: str, excerpt: str) -> str:
    """What the tool said of itself first, as much as fits above the question's last line."""
    question = excerpt.rpartition("\n")[2]
    room = EXCERPT_LIMIT - len(question) - 1
    if room < EXCERPT_LIMIT // 4:
        return cut(excerpt)
    head = said if len(said) <= room else said[: room - 1] + "…"
    return f"{head}\n{question}"


def _placed(excerpt: str, folder: str) -> str:
    """With the folder below the first line, unless the dialog names it."""
    first, _, rest = excerpt.partition("\n")
    return "\n".join(part for part in (first, f"in {folder}", rest) if part) if folder not in excerpt else excerpt


def _shortened(excerpt: str) -> str:
    """A dialog of the tool's own begins with what it is about and ends with its question."""
    head, _, question = excerpt.rpartition("\n")
    return _headed(head, question) if head and len(excerpt) > EXCERPT_LIMIT else excerpt


def safe_default(found: Finding) -> str:
    """What a timer may say: the refusing choice, `n`, Enter where Enter is all that is asked; else nothing.

    Nothing also wherever that might agree: a timer that is silent does no harm.
    """
    if found.constraints.get("secret") or found.type is PromptType.TYPE_UNKNOWN:
        return ""
    if found.type is PromptType.TYPE_CONFIRM_ENTER:
        return "" if compiled(_OR_ABORT).search(found.core) else "enter"
    if found.type is PromptType.TYPE_FREE_TEXT:
        # A program that reads keys may hold half a text already: Enter would send it.
        known = found.line_mode and not (found.constraints.get("idle") or found.structural)
        return "enter" if known and not _enter_may_agree(found) else ""
    if found.type is PromptType.TYPE_YES_NO and compiled(_ASKS_TO_STOP).search(found.core):
        return ""
    refusing = [choice for choice in found.choices if choice.refuses and choice.steps and not choice.always]
    if not found.own and found.type is PromptType.TYPE_MULTIPLE_CHOICE:
        plain = [choice for choice in refusing if compiled(_PLAIN_NO).fullmatch(choice.label)]
        refusing = plain or [choice for choice in refusing if not _goes_on(choice.label)]
    return refusing[0].value if refusing else ""


def _goes_on(label: str) -> bool:
    if compiled(_NEGATED).search(label):
        return compiled(_NOT_STOPPING).match(label) is not None
    return compiled(_NO_BUT).search(label) is not None


def _enter_may_agree(found: Finding) -> bool:
    """Its default is a yes, or it is a question of which nothing is known, in whatever language."""
    text = found.core.strip()
    if compiled(_ENTER_AGREES).search(text) or compiled(_CONSENT).fullmatch(str(found.constraints.get("default", ""))):
        return True
    return text.endswith(("?", "？")) and not compiled(_ASKS_WHAT).search(text)
