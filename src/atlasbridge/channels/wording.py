"""The words every chat channel shows for a prompt: title, kind of question, buttons, time left.  Pure.

How they are laid out (entities and keyboards, or blocks) is the channel's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.model import Choice, Confidence, Prompt, PromptRecord, PromptType
from atlasbridge.core.prompt.reply import Receipt
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

LABEL_LIMIT = 40
LAST_OUTPUT = 2000  # characters of a doubtful prompt's screen, shown with its buttons
TOOL_NAMES = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "opencode": "OpenCode"}
KIND_NAMES = {
    PromptType.TYPE_YES_NO: "Yes / No question",
    PromptType.TYPE_CONFIRM_ENTER: "Press Enter",
    PromptType.TYPE_MULTIPLE_CHOICE: "Multiple choice",
    PromptType.TYPE_FREE_TEXT: "Text input",
    PromptType.TYPE_UNKNOWN: "Unknown kind of input",
}
STAGE_MARKS = {
    "received": "📨",
    "typed": "⌨",
    "taken": "✅",
    "still_there": "⚠",
    "withdrawn": "↩",
    "expired": "⌛",
    "default_typed": "⌛",
    "canceled": "✖",
    "failed": "⚠",
    "answered_elsewhere": "👥",
    "reminder": "🔔",
}


class Role(StrEnum):
    """Why a button is there; a channel sets roles apart."""

    ANSWER = "answer"
    ALWAYS = "always"
    REFUSE = "refuse"
    DEFAULT = "default"
    CANCEL = "cancel"
    SHOW = "show"


@dataclass(frozen=True, slots=True)
class Button:
    label: str
    value: str
    role: Role


def tool_name(session: SessionRecord) -> str:
    return TOOL_NAMES.get(session.tool, visible(session.tool, keep_lines=False)[:LABEL_LIMIT])


def is_ambiguous(prompt: Prompt) -> bool:
    """Whether the person is first asked what to do at all."""
    unsure = prompt.confidence is Confidence.LOW and not prompt.choices
    return prompt.type is PromptType.TYPE_UNKNOWN or unsure


def offers_again(record: PromptRecord) -> bool:
    """Whether a look at the last output ends with the same question: what shall be done?"""
    return is_ambiguous(record.prompt) and record.state in OPEN


def render_title(prompt: Prompt, session: SessionRecord) -> str:
    tool = tool_name(session)
    if prompt.secret:
        return f"🔒 {tool} asks for a secret"
    if is_ambiguous(prompt):
        return f"🤖 AtlasBridge detected a possible input request of {tool} ({prompt.confidence.value} confidence)"
    if prompt.idle:
        return f"🏁 {tool} has finished and waits for your next instruction"
    return f"🤖 {tool} is waiting for your input"


def render_header(prompt: Prompt, session: SessionRecord, host: str) -> str:
    """Where it comes from.  All of it is ours: nothing the tool printed can stand here."""
    folder = visible(session.cwd, keep_lines=False)
    parts = [host, short_id(session.session_id), folder if len(folder) <= 60 else f"…{folder[-59:]}"]
    if session.label:
        parts.insert(1, visible(session.label, keep_lines=False)[:LABEL_LIMIT])
    return " · ".join([*parts, f"{prompt.confidence.value} confidence"])


def render_kind(prompt: Prompt) -> str:
    if is_ambiguous(prompt):
        return "Last output:"
    if prompt.constraints.get("multi_select"):
        return "Multiple choice, several allowed: mark them and send, or reply with their numbers, such as 1,3"
    return KIND_NAMES[prompt.type]


def render_question(prompt: Prompt) -> str:
    """The excerpt, made harmless; never empty, since a quotation of nothing cannot be shown."""
    return visible(prompt.excerpt).strip() or "(the screen shows no text)"


def render_hint(prompt: Prompt, prompt_id: str) -> str:
    """What to do, where the buttons alone do not say it."""
    if prompt.secret:
        return (
            "Chat never carries secrets. Answer at the terminal, on the local web page (atlasbridge web), "
            f"or with: atlasbridge reply {short_id(prompt_id)} -"
        )
    if prompt.idle:
        return "Reply to this message with the next instruction."
    if prompt.type is PromptType.TYPE_FREE_TEXT:
        limit = prompt.constraints.get("max_length")
        return "Reply to this message with the text." + (f" At most {limit} characters." if limit else "")
    if prompt.constraints.get("allows_other"):
        return "Tap a choice, or reply to this message with your own words."
    return "What should AtlasBridge do?" if is_ambiguous(prompt) else ""


def render_left(seconds: float) -> str:
    """ "9m 58s", "45s", "2h 5m"; "now" when nothing is left."""
    whole = max(0, int(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours}h {minutes}m"
    if minutes:
        return f"{minutes}m {whole % 60}s"
    return f"{whole}s" if whole else "now"


def render_default(prompt: Prompt) -> str:
    if not prompt.safe_default:
        return "none (left alone)"
    for choice in prompt.choices:
        if choice.value == prompt.safe_default and prompt.type is not PromptType.TYPE_YES_NO:
            return short_label(_numbered(choice))
    return _default_value(prompt)


def render_deadline(record: PromptRecord, now: float) -> str:
    return f"⏳ Expires in {render_left(record.deadline - now)} — default: {render_default(record.prompt)}"


def render_receipt(receipt: Receipt, who: str = "") -> str:
    """The sentence with a person's name in place of an identity, where this channel knows the name."""
    mark = STAGE_MARKS.get(receipt.stage, "•")
    sentence = receipt.sentence
    if who and receipt.by:
        sentence = sentence.replace(receipt.by, who)
    sentence = visible(sentence, keep_lines=False)
    return f"{mark} {sentence}" + (f" ({who})" if who and who not in sentence else "")


def short_label(label: str) -> str:
    flat = visible(label, keep_lines=False).strip() or "?"
    return flat if len(flat) <= LABEL_LIMIT else flat[: LABEL_LIMIT - 1] + "…"


def render_buttons(prompt: Prompt) -> list[Button]:
    """Every button of this prompt, in the order they are to be shown; none that answers a secret."""
    show = [Button("🔎 Show more", "", Role.SHOW)] if prompt.screen.strip() else []
    if prompt.secret:
        return []
    if is_ambiguous(prompt):
        return [
            Button("↩ Send Enter", "enter", Role.ANSWER),
            Button("🔎 Show last output", "", Role.SHOW),
            Button("✖ Cancel", "cancel", Role.CANCEL),
        ]
    return [*_answer_buttons(prompt), *_default_button(prompt), *show]


def _answer_buttons(prompt: Prompt) -> list[Button]:
    if prompt.constraints.get("multi_select"):
        return [_choice_button(choice) for choice in prompt.choices if choice.refuses]
    if prompt.choices:
        plain = "✅ " if prompt.type is PromptType.TYPE_YES_NO else ""
        return [_choice_button(choice, plain) for choice in sorted(prompt.choices, key=lambda choice: choice.refuses)]
    match prompt.type:
        case PromptType.TYPE_YES_NO:
            return [Button("✅ Yes", "y", Role.ANSWER), Button("❌ No", "n", Role.REFUSE)]
        case PromptType.TYPE_CONFIRM_ENTER:
            return [Button("↩️ Press Enter", "enter", Role.ANSWER)]
        case _:
            return []


def pickable(prompt: Prompt) -> list[tuple[int, str]]:
    """Place and text of every choice that can be marked where several are allowed; one that refuses stands apart."""
    if not prompt.constraints.get("multi_select") or prompt.secret:
        return []
    numbered = enumerate(prompt.choices)
    return [(place, _numbered(choice)) for place, choice in numbered if not choice.refuses]


def premarked(prompt: Prompt) -> list[int]:
    """The places of the choices that the tool shows as marked already."""
    return [place for place, _ in pickable(prompt) if prompt.choices[place].default]


def picked_value(prompt: Prompt, places: Iterable[int]) -> str:
    """What the gate takes for these choices: "1,3", or "none"."""
    return ",".join(prompt.choices[place].value for place in places) or "none"


def _choice_button(choice: Choice, mark: str = "") -> Button:
    text = short_label(_numbered(choice))
    if choice.refuses:
        return Button(f"❌ {text}", choice.value, Role.REFUSE)
    if choice.always:
        return Button(f"♾ always: {text}", choice.value, Role.ALWAYS)
    return Button(f"{mark}{text}", choice.value, Role.ANSWER)


def _numbered(choice: Choice) -> str:
    """ "2. Yes, always" where the tool counts; a letter that only repeats the label's says nothing more."""
    if choice.value == choice.label or choice.label[:1].lower() == choice.value.lower():
        return choice.label
    return f"{choice.value}. {choice.label}"


def _default_button(prompt: Prompt) -> list[Button]:
    if not prompt.safe_default:
        return []
    return [Button(f"⏩ Use default ({_default_value(prompt)})", "default", Role.DEFAULT)]


def _default_value(prompt: Prompt) -> str:
    if prompt.safe_default not in ("enter", "\r", "\n"):
        return short_label(prompt.safe_default)
    return "empty" if prompt.type is PromptType.TYPE_FREE_TEXT else "↩"
