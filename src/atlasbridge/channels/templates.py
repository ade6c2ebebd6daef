"""The texts that every chat channel shows for a prompt: title, kind of question, buttons, time left. Pure.

Each channel decides about the layout (entities and keyboards, or blocks).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from atlasbridge.channels.excerpt import KIND_WORDS, cut_to, in_a_line, is_ambiguous, names_subject
from atlasbridge.channels.language import at_time, current_language, hub_says, say_label, t
from atlasbridge.core.clock import SystemClock, parse_iso
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.operations import Changes
from atlasbridge.core.policy.approval import CARD, PROOF, may_be_granted
from atlasbridge.core.prompt.answer import decide_answer, first_line, named_key
from atlasbridge.core.prompt.model import OPEN, Choice, Prompt, PromptRecord, PromptType, Reject
from atlasbridge.core.scheduler.times import LIMIT
from atlasbridge.core.session.model import INTEGRATIONS, SessionRecord, session_name

LABEL_LIMIT = 40
NOT_SHOWN = "It could not be shown here. Read and answer it on the page, or with: atlasbridge approvals"
REST = "🔎 Show all, or atlasbridge approvals"
NO_DEFAULT = "no default: nothing is typed"
NO_SECRETS = (
    "Chat never carries secrets. Answer at the terminal, on the local web page (atlasbridge web), or with: {command}"
)
TAP = "Tap a choice, or reply to this message with your own words."
SURE, BACK = "This choice also answers later requests.", "Back"
CHANGED = "changed"  # the constraint under which a chat keeps what a finished agent has changed
LIMIT_BUTTON, CONTINUE = "limit", "continue"  # the value of a button, and its answer when the usage limit has ended
ENTER_KEYS = ("enter", "\r", "\n")
HEADLINE_LIMIT = 110
LISTED_LIMIT = 200  # of a choice's label in a list
TOOL_NAMES = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "opencode": "OpenCode"} | INTEGRATIONS
KIND_NAMES = {
    PromptType.TYPE_YES_NO: "Yes / No question",
    PromptType.TYPE_CONFIRM_ENTER: "Press Enter",
    PromptType.TYPE_MULTIPLE_CHOICE: "Multiple choice",
    PromptType.TYPE_FREE_TEXT: "Text input",
    PromptType.TYPE_UNKNOWN: "Unknown kind of input",
}


class Role(StrEnum):
    """The purpose of a button; channels group buttons by role."""

    ANSWER = "answer"
    ALWAYS = "always"
    REFUSE = "refuse"
    DEFAULT = "default"
    CANCEL = "cancel"
    SHOW = "show"
    GRANT = "grant"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Button:
    label: str
    value: str
    role: Role


def tool_name(session: SessionRecord) -> str:
    return TOOL_NAMES.get(session.tool, escape_controls(session.tool, keep_lines=False)[:LABEL_LIMIT])


def host_name(session: SessionRecord, host: str) -> str:
    """The machine's name, unless the session's name contains it."""
    return "" if session.machine else host


def render_where(session: SessionRecord, host: str) -> str:
    return " · ".join(filter(None, (tool_name(session), session_name(session), host_name(session, host))))


def render_notice(message: str, session: SessionRecord | None) -> str:
    """A sentence of the hub for the reader, with the name of its session."""
    told = escape_controls(hub_says(message))
    return f"{session_name(session)}: {told}" if session is not None else told


def render_brief(prompt: Prompt, session: SessionRecord) -> str:
    """A prompt on a button or in a list: its session and the start of its question."""
    idle = t("the next command") if prompt.constraints.get("commands") else t("the next instruction")
    asked = idle if prompt.idle else short_label(first_line(prompt))
    return f"{session_name(session)}: {asked}"


def offers_again(record: PromptRecord) -> bool:
    """Whether the last output is followed by the same buttons again."""
    return is_ambiguous(record.prompt) and record.state in OPEN


def render_headline(prompt: Prompt, session: SessionRecord) -> str:
    """The start of the question and the session's name, for a notification. The tool's text is quoted."""
    name = session_name(session)
    if prompt.secret:
        return f"🔒 {t('{name} asks for a secret', name=name)}"
    if prompt.idle and prompt.constraints.get("commands"):
        return f"💬 {t('{name} waits for your next command', name=name)}"
    if prompt.idle:
        return f"💬 {t('{name} waits for your next instruction', name=name)}"
    told = prompt.subject is not None and prompt.subject.shown.strip()
    verb = t(KIND_WORDS[prompt.subject.kind].verb) if prompt.subject is not None and told else "{text}"
    room = HEADLINE_LIMIT - len(name) - len(verb)
    return f"❓ {verb.replace('{text}', f'“{cut_to(first_line(prompt), room)}”')} · {name}"


def render_title(prompt: Prompt, session: SessionRecord) -> str:
    """The title of a card: who asks, and for what. The words themselves are quoted right below it."""
    if prompt.secret or prompt.idle:
        return render_headline(prompt, session)
    name, about = session_name(session), prompt.subject
    if about is None or not names_subject(prompt):
        return f"❓ {t('{name} asks:', name=name)}"
    target = escape_controls(about.target or first_line(prompt), keep_lines=False).removeprefix(f"{about.folder}/")
    return f"❓ {t(KIND_WORDS[about.kind].wants, name=name, text=target[-HEADLINE_LIMIT:])}"


def render_header(prompt: Prompt, session: SessionRecord, host: str, titled: bool = False) -> str:
    """Where the prompt comes from. It contains only our own text, nothing that the tool printed. `titled`: below a
    title that names the session."""
    about = prompt.subject
    folder = escape_controls((about.folder if about is not None else "") or session.cwd, keep_lines=False)
    where = folder if len(folder) <= 60 else f"…{folder[-59:]}"
    name = "" if titled else session_name(session)
    parts = [tool_name(session), name, host_name(session, host), where, short_id(session.session_id)]
    return " · ".join(dict.fromkeys(part for part in parts if part))


def render_kind(prompt: Prompt, session: SessionRecord) -> str:
    if prompt.secret or (prompt.idle and not is_ambiguous(prompt)):
        return ""
    if is_ambiguous(prompt):
        tool = tool_name(session)
        return t("AtlasBridge detected a possible input request of {tool}. Last output:", tool=tool)
    if prompt.constraints.get("multi_select"):
        return t("Multiple choice, several allowed: select them and send, or reply with their numbers, such as 1,3")
    return t(KIND_NAMES[prompt.type])


def listed_choices(prompt: Prompt, choices: Sequence[Choice], room: int) -> list[str]:
    """List the choices whose label does not fit on its button; of several that can be marked, all."""
    full = [numbered(choice) for choice in choices]
    if not prompt.constraints.get("multi_select"):
        full = [one for one in full if len(one) >= LABEL_LIMIT]
    if not full:
        return []
    most = max(10, min(LISTED_LIMIT, room // len(full) - 1))
    flat = [escape_controls(one, keep_lines=False) for one in full]
    lines = [cut_to(one, most) for one in flat]
    if any(len(one) > most for one in flat):
        lines.append(t("(labels are cut; whole: 🔎, or atlasbridge approvals)"))
    return lines


def count_changes(found: Changes) -> str:
    """In one line."""
    if not found.count:
        none = "nothing has changed since it started."
        return t(none) if found.whole else t("no change was found; the folder is very large.")
    files = t("1 file changed|{count} files changed", count=found.count)
    lines = t("+{added} −{removed} lines", added=found.added, removed=found.removed)
    part = f" ({t('not all of the folder could be read')})"
    return f"{files}{f', {lines}' if found.repository else ''}{'' if found.whole else part}"


def render_hint(prompt: Prompt, prompt_id: str, threads: bool = False) -> str:
    """What to do, if the buttons alone do not explain it. With `threads`, people reply in one."""
    say = _in_thread if threads else t
    proof = prompt.constraints.get(PROOF)
    if isinstance(proof, dict):
        where = escape_controls(str(proof.get("page") or ""), keep_lines=False) or "atlasbridge web"
        sign = t("To approve this, sign it with your passkey on the page: {where}", where=where)
        return f"🔑 {sign}\n{t('You can refuse it here.')}"
    wanted = prompt.constraints.get("quorum")
    if isinstance(wanted, dict):
        rule = escape_controls(str(wanted["rule"]), keep_lines=False)
        return t("{count} people must approve (rule {rule}).", count=wanted["approvals"], rule=rule)
    if prompt.secret:
        command = f"atlasbridge reply {short_id(prompt_id)} -"
        return t(NO_SECRETS, command=command)
    if prompt.idle and not is_ambiguous(prompt):
        changed = prompt.constraints.get(CHANGED)
        said = f"✏️ {count_changes(changed)}\n" if isinstance(changed, Changes) else ""
        shell = prompt.constraints.get("commands")
        wanted = "Reply to this message with the next instruction."
        return said + (say("Reply to this message with the next command.") if shell else say(wanted))
    if prompt.fields:
        names = [escape_controls(field.label, keep_lines=False) for field in prompt.fields]
        form = "A form: reply with its fields, such as “{first}: …; {last}: …”. The others stay."
        return t(form, first=names[0], last=names[-1])
    if prompt.type is PromptType.TYPE_FREE_TEXT:
        limit = prompt.constraints.get("max_length")
        parts = [say("Reply to this message with the text.")]
        parts += [t("At most {limit} characters.", limit=limit)] if limit else []
        parts += [t("The words enter, esc and ctrl-c press the key.")] if takes_keys(prompt) else []
        return " ".join(parts)
    if is_ambiguous(prompt):
        words = t("You can also reply with text; enter, esc and ctrl-c press that key.")
        asked = f"{t('What should AtlasBridge do?')} {t('Cancel leaves it alone: nothing is typed.')}"
        return f"{asked} {words}" if takes_words(prompt) else asked
    return say(TAP) if takes_words(prompt) else ""


def _in_thread(english: str) -> str:
    return t(english.replace("eply to this message", "eply in this thread"))


def render_left(seconds: float) -> str:
    """ "9m 58s", "45s", "2h 5m"; "now" when nothing is left."""
    whole = max(0, int(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours}h {minutes}m"
    if minutes:
        return f"{minutes}m {whole % 60}s"
    return f"{whole}s" if whole else t("now")


def render_deadline(record: PromptRecord) -> str:
    """How long the prompt can be answered, and what happens then. The clock time stays correct without edits."""
    prompt, until = record.prompt, parse_iso(record.expires_at)
    left = render_left(until - SystemClock().wall())
    then = t("default: {value}", value=default_word(prompt)) if prompt.safe_default else t(NO_DEFAULT)
    moment = at_time(until, "%a %H:%M %Z" if until - parse_iso(record.created_at) > 43_200 else "%H:%M %Z")
    link = prompt.constraints.get(CARD)
    card = f"\n🔗 {escape_controls(link, keep_lines=False)}" if isinstance(link, str) and link else ""
    if prompt.idle and not prompt.safe_default:
        return card.lstrip()  # nothing is asked, and nothing happens when the time is over
    return f"⏳ {t('Expires in {span} ({time})', span=left, time=moment)} — {then}{card}"


def default_word(prompt: Prompt) -> str:
    """The timer's answer in a word; "empty" if Enter alone answers a text question."""
    if prompt.type is PromptType.TYPE_FREE_TEXT:
        return t("empty")
    value = "↩" if prompt.safe_default in ENTER_KEYS else prompt.safe_default
    return next((short_label(numbered(choice)) for choice in prompt.choices if choice.value == value), value)


def page_of(number: int, pages: int) -> str:
    return t("{number} of {pages}", number=number, pages=pages)


def short_label(label: str) -> str:
    return in_a_line(label, LABEL_LIMIT)


def render_buttons(prompt: Prompt) -> list[Button]:
    """All buttons of this prompt in display order. No button answers a secret."""
    show = [Button(f"🔎 {t('Show all')}", "", Role.SHOW)] if prompt.screen.strip() or prompt.subject else []
    show = [Button(f"📄 {t('The whole answer')}", "", Role.SHOW)] if prompt.idle and not prompt.secret else show
    if prompt.secret:
        return []
    if is_ambiguous(prompt) and PROOF in prompt.constraints:
        return [*show, Button(f"✖ {t('Cancel')}", "cancel", Role.CANCEL)]
    if is_ambiguous(prompt):
        return [
            Button(f"↩ {t('Send Enter')}", "enter", Role.ANSWER),
            Button(f"🔎 {t('Show last output')}", "", Role.SHOW),
            Button(f"✖ {t('Cancel')}", "cancel", Role.CANCEL),
        ]
    if PROOF in prompt.constraints or prompt.constraints.get("disagrees"):
        return [*(one for one in _answer_buttons(prompt) if one.role is Role.REFUSE), *show]
    grant = [Button(f"⏱ {t('Allow for a while …')}", "", Role.GRANT)] if may_be_granted(prompt) else []
    return [*_answer_buttons(prompt), *_default_button(prompt), *_limit_button(prompt), *grant, *show]


def _limit_button(prompt: Prompt) -> list[Button]:
    """If the tool waits for its usage limit, a button can schedule "continue" for the time when it ends."""
    resets = prompt.constraints.get(LIMIT)
    if not resets or prompt.type is not PromptType.TYPE_FREE_TEXT:
        return []
    moment = at_time(parse_iso(str(resets)), "%a %H:%M")
    told = t("“{value}” when the limit resets, {time}", value=CONTINUE, time=moment)
    return [Button(f"⏰ {told}", LIMIT_BUTTON, Role.LATER)]


def _answer_buttons(prompt: Prompt) -> list[Button]:
    if prompt.constraints.get("multi_select"):
        return [_choice_button(prompt, choice) for choice in prompt.choices if choice.refuses]
    if prompt.choices:
        plain = "✅ " if prompt.type is PromptType.TYPE_YES_NO else ""
        return [
            _choice_button(prompt, choice, plain)
            for choice in sorted(prompt.choices, key=lambda choice: choice.refuses)
        ]
    match prompt.type:
        case PromptType.TYPE_YES_NO:
            return [Button(f"✅ {t('Yes')}", "y", Role.ANSWER), Button(f"❌ {t('No')}", "n", Role.REFUSE)]
        case PromptType.TYPE_CONFIRM_ENTER:
            return [Button(f"↩️ {t('Press Enter')}", "enter", Role.ANSWER)]
        case _:
            return []


def pickable(prompt: Prompt) -> list[tuple[int, str]]:
    """Position and text of every choice that can be marked in a multiple choice; refusing choices are excluded."""
    if not prompt.constraints.get("multi_select") or prompt.secret:
        return []
    return [(place, numbered(choice)) for place, choice in enumerate(prompt.choices) if not choice.refuses]


def premarked(prompt: Prompt) -> list[int]:
    """The positions of the choices that the tool shows as marked."""
    return [place for place, _ in pickable(prompt) if prompt.choices[place].default]


def picked_value(prompt: Prompt, places: Iterable[int]) -> str:
    """The value for these choices that the gate accepts: "1,3", or "none"."""
    return ",".join(prompt.choices[place].value for place in places) or "none"


def _choice_button(prompt: Prompt, choice: Choice, mark: str = "") -> Button:
    text = short_label(numbered(choice))
    if needs_words(prompt, choice.value):
        return Button(f"✍ {text}", choice.value, Role.ANSWER)
    if choice.refuses:
        return Button(f"❌ {text}", choice.value, Role.REFUSE)
    if choice.always:
        return Button(f"♾ {t('always')}: {text}", choice.value, Role.ALWAYS)
    return Button(f"{mark}{text}", choice.value, Role.ANSWER)


def sure_label(choice: Choice) -> str:
    """On the button of the second tap."""
    return f"♾ {t('Yes, always')}: {short_label(numbered(choice))}"


def numbered(choice: Choice) -> str:
    """Return "2. Yes, always" if the tool numbers its choices; a letter that only repeats the label is omitted."""
    said = choice.value.lower()
    if said in (choice.label.lower(), choice.label[:1].lower()):
        return say_label(choice.value, choice.label)
    return f"{choice.value}. {choice.label}"


def _default_button(prompt: Prompt) -> list[Button]:
    """A button for the timer's answer; a text question can be answered with an empty text."""
    if prompt.type is PromptType.TYPE_FREE_TEXT and not prompt.idle:
        return (
            [Button(f"⏩ {t('Use default ({value})', value=t('empty'))}", "enter", Role.DEFAULT)]
            if takes_keys(prompt)
            else []
        )
    if not prompt.safe_default:
        return []
    english = current_language() == "en"
    value = prompt.safe_default if english and prompt.safe_default not in ENTER_KEYS else default_word(prompt)
    return [Button(f"⏩ {t('Use default ({value})', value=value)}", "default", Role.DEFAULT)]


# Free text answers: which prompts accept them, which choices ask for them, and when a message is one. Pure.

SHORTEST = 2  # a single letter or a number is a choice or meaningless


def takes_words(prompt: Prompt) -> bool:
    if prompt.secret:
        return False
    other = prompt.constraints.get("allows_other") or prompt.text_steps
    line = prompt.type is PromptType.TYPE_UNKNOWN and bool(
        prompt.end_steps
    )  # the tool reads a line, but the reason is unknown
    return prompt.type is PromptType.TYPE_FREE_TEXT or line or bool(other and prompt.choices)


def takes_keys(prompt: Prompt) -> bool:
    """Whether a key can be pressed by its name. This is impossible for a secret and without a terminal."""
    return named_key(prompt, "enter") != ""


def needs_words(prompt: Prompt, value: str) -> bool:
    """Whether this choice needs a text: it opens a field for the person's own words."""
    found = [choice for choice in prompt.choices if choice.value == value]
    return bool(found) and takes_words(prompt) and _opens_field(prompt, found[0])


def reads_as_words(prompt: Prompt, text: str) -> bool:
    """Whether to type `text` as it is. A text that names a choice, or looks like one, is never typed."""
    if named_key(prompt, text):
        return False  # the person means the key
    if prompt.type is PromptType.TYPE_FREE_TEXT:
        return True
    if prompt.type is PromptType.TYPE_UNKNOWN and takes_words(prompt):
        return text.strip().lower() not in ("cancel", "default")
    if not takes_words(prompt):
        return False
    word = text.strip()
    if len(word) < SHORTEST or word.replace(",", "").replace(" ", "").isdigit():
        return False
    if word.lower() in ("cancel", "leave", "default"):
        return False
    return isinstance(decide_answer(prompt, text), Reject)


def _opens_field(prompt: Prompt, choice: Choice) -> bool:
    return not choice.steps and not choice.refuses and any(other.steps for other in prompt.choices)
