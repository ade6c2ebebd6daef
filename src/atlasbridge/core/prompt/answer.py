"""Converts a person's reply to an answer that is valid for its prompt, and an answer to exact keys.

The reply gate uses `decide_answer`, the session host uses `encode_answer`. Text is never typed into a menu: it names
one of its choices, or is refused with the list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from atlasbridge.core.escape import escape_controls, is_plain_line
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, Stands, Step, When, parse_keys
from atlasbridge.core.prompt.model import (
    Answer,
    AnswerKind,
    Choice,
    FormField,
    Prompt,
    PromptType,
    Refusal,
    Reject,
    SubjectKind,
)
from atlasbridge.core.prompt.redact import redact
from atlasbridge.core.prompt.vocabulary import answers_as, begins, letter_of

# An answer in readable form, for receipts and records: the label of the choice, never the value of a secret.

LABEL_LIMIT = 200
SECRET_LABEL = "(a secret)"
HERE = "cli:local"  # any command on this machine
TIMER = "auto:timeout"  # the decider if nobody answered in time
KEY_LABELS = {"enter": "Enter key", "esc": "Esc key", "ctrl-c": "Ctrl-C key"}
_PLAIN = {AnswerKind.YES: "y", AnswerKind.NO: "n", AnswerKind.ENTER: "Enter"}


def label_answer(prompt: Prompt, answer: Answer) -> str:
    """The label of an answer for records and messages; a long text is cut with an ellipsis."""
    if prompt.secret:
        return SECRET_LABEL
    flat = escape_controls(redact(_words(prompt, answer)), keep_lines=False)
    return flat if len(flat) <= LABEL_LIMIT else f"{flat[: LABEL_LIMIT - 1]}…"


def _words(prompt: Prompt, answer: Answer) -> str:
    key = "enter" if answer.kind is AnswerKind.ENTER else answer.value if answer.kind is AnswerKind.KEYS else ""
    if key in KEY_LABELS and prompt.type in (PromptType.TYPE_FREE_TEXT, PromptType.TYPE_UNKNOWN):
        return KEY_LABELS[key]  # not the word, which could also have been typed as text
    match answer.kind:
        case AnswerKind.YES | AnswerKind.NO | AnswerKind.ENTER:
            plain = _PLAIN[answer.kind]
            return _choice_words(prompt, plain) or plain
        case AnswerKind.CHOICE:
            return _choice_words(prompt, answer.value) or answer.value
        case AnswerKind.CHOICES:
            values = [value for value in answer.value.split(",") if value]
            return ", ".join(_choice_words(prompt, value) or value for value in values) or "none"
        case _:
            return answer.value


def _choice_words(prompt: Prompt, value: str) -> str:
    """Formats a choice like "2. No, and tell Claude" if the tool numbers them. A letter that only repeats its label is
    left out."""
    for choice in prompt.choices:
        if choice.value == value:
            same = value == choice.label or choice.label[:1].lower() == value.lower()
            return choice.label if same else f"{value}. {choice.label}"
    return ""


def first_line(prompt: Prompt) -> str:
    """The start of the question on one line, for a notification. It says so if a command has more lines."""
    subject = prompt.subject
    if subject is not None and subject.shown.strip() and subject.kind is not SubjectKind.QUESTION:
        if subject.kind in (SubjectKind.EDIT, SubjectKind.FETCH) and subject.targets:
            return _one_line(", ".join(subject.targets))
        first, *more = [line for line in subject.shown.splitlines() if line.strip()]
        return _one_line(first) + (" …" if more else "")
    lines = [flat for line in prompt.excerpt.splitlines() if (flat := _one_line(line)) not in ("", "…")]
    asking = [line for line in lines if "?" in line]
    if not asking and prompt.context_rows:
        return lines[-1] if lines else "?"  # earlier output is above the line that asks
    return (asking or lines or ["?"])[0]


def _one_line(text: str) -> str:
    return escape_controls(text, keep_lines=False).strip()


def call_person(identity: str, place: str = "", name: str = "") -> str:
    """How a sentence refers to a person: by name if it is known. For a command on this machine, only its place is
    known."""
    if identity == TIMER:
        return "a timer, because nobody answered in time"
    if identity == HERE and not name:
        return f"a person at {place or 'this machine'}"
    who = name or identity or "somebody"
    return f"{who} ({place})" if place else who


def quote_answer(label: str) -> str:
    """How a sentence shows an answer: in quotes, except for a secret or a key."""
    if label in KEY_LABELS.values():
        return f"the {label}"
    return "a secret" if label == SECRET_LABEL else f'"{label}"'


TEXT_LIMIT = 1000
INSTRUCTION_LIMIT = 4096  # for instructions to an idle tool
CANONICAL_LIMIT = 4095  # bytes; the line discipline silently cuts a longer line
PASTE_START, PASTE_END = b"\x1b[200~", b"\x1b[201~"
_ENTER = {"enter", "return", "⏎", "↵", "\r", "\n"}
_PRESSED = {"esc": "esc", "escape": "esc", "⎋": "esc", "ctrl-c": "ctrl-c", "ctrl+c": "ctrl-c", "^c": "ctrl-c"}
_KEYED = (PromptType.TYPE_FREE_TEXT, PromptType.TYPE_UNKNOWN, PromptType.TYPE_CONFIRM_ENTER)
_COUNTED = lazy(r"^\d{1,3}[:.)] ")  # a list number that is part of the label
_KEY_BEFORE = lazy(r"(?:[\[(](\w{1,3})[\])]|(\w{1,3})(?:[).:]|\s[-=]))\s+(\S.*)")
_BRACKETS = lazy(r"[\[\]()]")
_WORDS = lazy(r"[\w'’-]+")
_NEGATES = lazy(r"\b(?:no|not|don['’]?t|never|without|skip|except|but)\b", re.IGNORECASE)
_APART = lazy(r"\s{2,}")  # separates a name from its meaning: `c  Gamma`
_KEY_BEHIND = lazy(r"(?<!\s)\s*+\([^()]{1,8}\)$")  # `No (esc)`
_DECLINES = lazy(r"(?:don['’]?t|do not|not|never|stop|cancel|abort|quit|exit)\b")


def decide_answer(prompt: Prompt, value: str, *, as_text: bool = False, as_keys: bool = False) -> Answer | Reject:
    """Decides what `value` means for this prompt. Returns a `Reject` with one sentence if it means nothing."""
    if as_keys:
        return _keys(prompt, value)
    if as_text:
        return _text(prompt, value, asked_for=True)
    word = value.strip()
    if word.lower() == "default":
        return _default(prompt)
    if key := named_key(prompt, word):
        return Answer(AnswerKind.ENTER) if key == "enter" else Answer(AnswerKind.KEYS, key)
    match prompt.type:
        case PromptType.TYPE_YES_NO:
            return _yes_no(prompt, word)
        case PromptType.TYPE_CONFIRM_ENTER:
            return Answer(AnswerKind.ENTER) if not word else _text(prompt, value)
        case PromptType.TYPE_MULTIPLE_CHOICE:
            return _choice(prompt, word)
    return _text(prompt, value)


def named_key(prompt: Prompt, word: str) -> str:
    """Returns "enter", "esc" or "ctrl-c" if the word names that key and the prompt accepts it; otherwise "".

    A secret can be any word, and a question without a terminal has no keys.
    """
    low = word.strip().lower()
    key = "enter" if low in _ENTER else _PRESSED.get(low, "")
    handed_over = bool(prompt.end_steps) and not any(step.keys for step in prompt.end_steps)
    return "" if prompt.secret or handed_over or prompt.type not in _KEYED else key


def encode_answer(prompt: Prompt, answer: Answer) -> tuple[Step, ...]:
    """Returns the keys in steps. Text and its Enter are separate steps, because raw programs treat a single write as a
    paste."""
    match answer.kind:
        case AnswerKind.KEYS:
            return (Step(parse_keys(answer.value)),)
        case AnswerKind.ENTER:
            return (
                prompt.end_steps
                if prompt.end_steps and (prompt.fields or prompt.type is PromptType.TYPE_CONFIRM_ENTER)
                else (Step(ENTER),)
            )
        case AnswerKind.YES | AnswerKind.NO:
            return _steps_of(prompt, "y" if answer.kind is AnswerKind.YES else "n")
        case AnswerKind.CHOICE:
            return _steps_of(prompt, answer.value)
        case AnswerKind.CHOICES:
            return _several(prompt, answer.value.split(","))
    if prompt.fields:
        return encode_form(prompt.fields, answer.value, prompt.end_steps)
    return _text_steps(prompt, answer.value)


def _steps_of(prompt: Prompt, value: str) -> tuple[Step, ...]:
    for choice in prompt.choices:
        if choice.value == value:
            return choice.steps
    return () if prompt.choices else (Step(value.encode(), When.DRAINED), Step(ENTER))


def _several(prompt: Prompt, values: list[str]) -> tuple[Step, ...]:
    """Encodes a multiple selection from top to bottom. The last step of a choice toggles its box; the steps before it
    move there."""
    turned = [(choice.value in values) != choice.default and bool(choice.steps) for choice in prompt.choices]
    steps: list[Step] = []
    for at, choice in enumerate(prompt.choices):
        if any(turned[at:]):
            steps += choice.steps if turned[at] else choice.steps[:-1]
    return (*steps, *prompt.end_steps)


def _text_steps(prompt: Prompt, text: str) -> tuple[Step, ...]:
    data = text.encode()
    if "\n" in text:
        data = PASTE_START + data.replace(b"\n", b"\r") + PASTE_END
    ending = prompt.words_end or prompt.end_steps or (Step(ENTER),)
    drawn = (
        When.RESTED if "\n" in text else When.REDRAWN
    )  # also for a secret: some boxes miss the text if Enter arrives too early
    typed = (Step(data, When.DRAINED if prompt.line_mode else drawn),) if data else ()
    return (*prompt.text_steps, *typed, *ending)


def _keys(prompt: Prompt, value: str) -> Answer | Reject:
    """Keys are typed as given. A key that is itself one of the choices selects that choice, with the Enter it needs."""
    for choice in prompt.choices:
        if choice.value == value and choice.steps and not value.isdigit():
            return Answer(AnswerKind.CHOICE, value)
    try:
        keys = parse_keys(value)
    except ValueError as error:
        return _bad(f"These keys cannot be read: {error}.")
    return Answer(AnswerKind.KEYS, value) if keys else _bad("There are no keys to type.")


def _default(prompt: Prompt) -> Answer | Reject:
    if not prompt.safe_default:
        return _bad("This prompt has no safe default; " + _offer(prompt))
    return decide_answer(prompt, prompt.safe_default)


def _yes_no(prompt: Prompt, word: str) -> Answer | Reject:
    low = word.lower().rstrip(".!")
    numbered = not prompt.choices  # otherwise a number is a position, and No can be the first
    if _agrees(low) or (numbered and low == "1") or _is_letter(prompt, low, "agree"):
        return Answer(AnswerKind.YES)
    if _declines(low) or (numbered and low == "2") or _is_letter(prompt, low, "refuse"):
        return Answer(AnswerKind.NO)
    defaults = [choice for choice in prompt.choices if choice.default]
    if low in _ENTER and defaults:  # a highlight can have moved since; the default of a line cannot
        return Answer(AnswerKind.ENTER) if prompt.line_mode else Answer(AnswerKind.CHOICE, defaults[0].value)
    chosen = _find(prompt, word) or _by_letter(prompt, low)
    return Answer(AnswerKind.CHOICE, chosen.value) if chosen and chosen.steps else _bad(_offer(prompt))


def _by_letter(prompt: Prompt, letter: str) -> Choice | None:
    """The choice whose typed key is this letter, as the question shows it: `[t/N]`."""
    taken = [one for one in prompt.choices if any(step.keys.lower() == letter.encode() for step in one.steps)]
    return taken[0] if len(letter) == 1 and letter.isalpha() and len(taken) == 1 else None


def _choice(prompt: Prompt, word: str) -> Answer | Reject:
    if prompt.constraints.get("multi_select"):
        return _choices(prompt, word)
    chosen = _find(prompt, word) or _by_meaning(prompt, word) or _by_beginning(prompt, word)
    if chosen is None:
        return _bad(_offer(prompt))
    if not chosen.steps:
        return _bad(f"{chosen.label!r} needs your own words: send them as text.")
    return Answer(AnswerKind.CHOICE, chosen.value)


def _choices(prompt: Prompt, words: str) -> Answer | Reject:
    if words.lower() in ("none", "nothing", *_ENTER):
        return Answer(AnswerKind.CHOICES, "")
    out = _find(prompt, words) or (_by_meaning(prompt, words) if _declines(words) else None)
    if out is not None and out.refuses and out.steps:
        return Answer(AnswerKind.CHOICE, out.value)  # leaves the list: nothing is marked, nothing is sent
    values = []
    for word in re.split(r"\s*[,;+]\s*|\s+", words) if _find(prompt, words) is None else [words]:
        chosen = _find(prompt, word)
        if chosen is None or not chosen.steps or chosen.value == "cancel":
            return _bad(_offer(prompt))
        values.append(chosen.value)
    return Answer(AnswerKind.CHOICES, ",".join(dict.fromkeys(values)))


def _find(prompt: Prompt, word: str) -> Choice | None:
    """Finds a choice by value, by label or by position."""
    low = word.lower()
    exact = [
        *(choice for choice in prompt.choices if choice.value == word),
        *(choice for choice in prompt.choices if low in (choice.value.lower(), choice.label.lower())),
        *(choice for choice in prompt.choices if low == _COUNTED.sub("", choice.label).lower()),
        *(choice for choice in prompt.choices if low == _BRACKETS.sub("", choice.label).lower()),  # `(o)verwrite`
        *(choice for choice in prompt.choices if low in _keyed(choice.label)),  # `[s] skip`, `s) skip`
    ]
    if exact:
        return exact[0]
    parts = [choice for choice in prompt.choices if low in _APART.split(choice.label.lower())]
    if len(parts) == 1:
        return parts[0]
    counted = any(choice.value.isdigit() for choice in prompt.choices)  # then no other number is valid
    places = {str(at): choice for at, choice in enumerate(prompt.choices, 1)}  # no int(): a word can be any digits
    return None if counted else places.get(word.lstrip("0"))


def _keyed(label: str) -> tuple[str, ...]:
    """The key that a label starts with, and its words: `[s] skip`, `(14) Existing key`, `s - skip`."""
    found = _KEY_BEFORE.fullmatch(label.lower())
    return (found[1] or found[2], found[3]) if found else ()


def _by_beginning(prompt: Prompt, word: str) -> Choice | None:
    """Finds a choice by an unambiguous beginning of its label. Yes and no never match this way, nor does "don't" match
    "Don't ask again"."""
    low = word.lower()
    counted = all(one.value.isdigit() and not (one.always or begins("agree", one.label)) for one in prompt.choices)
    if _agrees(low) or _declines(low) or (len(low) < 3 and not (counted and low.isalpha())):
        return None
    labels = [(choice, _BRACKETS.sub("", choice.label).lower()) for choice in prompt.choices]
    begun = [choice for choice, label in labels if label.startswith(low)]
    if len(low) < 3 and len(begun) != 1:
        return None
    # a single word of one label, unless the label says more: "ask" does not match "Yes, and don't ask again"
    if not begun:
        begun = [choice for choice, label in labels if low in _WORDS.findall(label)]
        begun = [] if any(one.always or _NEGATES.search(one.label) for one in begun) else begun
    if len(begun) != 1 or (_DECLINES.fullmatch(low) and not begun[0].refuses):
        return None
    return begun[0]


def _agrees(word: str) -> bool:
    return answers_as(word, "agree")


def _declines(word: str) -> bool:
    return answers_as(word, "refuse")


def _is_letter(prompt: Prompt, letter: str, kind: str) -> bool:
    """Whether it is a letter of another language, and the question is asked in that language."""
    return len(letter) == 1 and any(letter_of(letter, kind, choice.label) for choice in prompt.choices)


def _by_meaning(prompt: Prompt, word: str) -> Choice | None:
    """Handles a plain yes or no at a menu: returns the only choice that approves, or denies, just once."""
    low = word.lower()
    if _declines(low) or _is_letter(prompt, low, "refuse"):
        return _refusal(prompt)
    if _agrees(low) or _is_letter(prompt, low, "agree"):
        said = [one for one in prompt.choices if begins("agree", one.label) or _agrees(one.label)]
        agreeing = [choice for choice in said if not choice.refuses]
        once = [choice for choice in agreeing if not choice.always]
        preferred = once if len(once) == 1 else [choice for choice in once if choice.default]
        return preferred[0] if len(preferred) == 1 else None
    if low in _ENTER:
        defaults = [choice for choice in prompt.choices if choice.default]
        return defaults[0] if len(defaults) == 1 else None
    return None


def _refusal(prompt: Prompt) -> Choice | None:
    """The denying choice. If there are several, the one that says only no takes precedence over one that only
    leaves."""
    refusing = [choice for choice in prompt.choices if choice.refuses and not choice.always]
    plain = [choice for choice in refusing if answers_as(_KEY_BEHIND.sub("", choice.label).rstrip(" .!"), "refuse")]
    taking = [choice for choice in refusing if choice.steps]  # the others need a text
    saying = [choice for choice in taking if not begins("cancel", choice.label)]
    for group in (refusing, plain, taking, saying):
        if len(group) == 1:
            return group[0]
    return None


def _text(prompt: Prompt, text: str, asked_for: bool = False) -> Answer | Reject:
    """With `asked_for`, the person wants these words typed, as `reply --text` does."""
    if prompt.type is PromptType.TYPE_YES_NO:
        return _spelled(prompt, text)
    typed = prompt.text_steps or prompt.line_mode or prompt.constraints.get("allows_other")
    if prompt.type is PromptType.TYPE_MULTIPLE_CHOICE and not typed:
        return _bad("This is a menu; words are not typed into it. " + _offer(prompt))
    if prompt.type is PromptType.TYPE_UNKNOWN and not prompt.end_steps:
        return _bad('AtlasBridge cannot tell which keys this waits for; use --keys, for example --keys "q".')
    low = text.strip().lower().rstrip(".!")
    # A program that reads lines gets the words, except a no, which Enter would follow.
    read = asked_for and prompt.line_mode and not (_declines(low) or _DECLINES.fullmatch(low))
    if prompt.type is PromptType.TYPE_CONFIRM_ENTER and not read and not _is_offered(prompt, text):
        return _bad("This prompt takes only Enter; text would choose nothing. Answer `enter`, or use --keys.")
    if prompt.fields:
        why = decide_form(prompt.fields, text)
        return _bad(why) if why else Answer(AnswerKind.TEXT, text)
    return _bad_text(prompt, text) or Answer(AnswerKind.TEXT, text)


def _is_offered(prompt: Prompt, text: str) -> bool:
    """Whether the question itself offers these words: `Press Enter to continue or type no to leave:`."""
    question = (prompt.question or prompt.excerpt).rpartition("\n")[2]
    word = re.escape(text.strip().rstrip(".!"))
    offers = rf"\b(?:type|enter|say|or|press)\W+{word}(?!\w)|(?<!\w){word}\W+(?:to|for)\b"
    return bool(word) and re.search(offers, question, re.IGNORECASE) is not None


def _spelled(prompt: Prompt, text: str) -> Answer | Reject:
    """Handles text at a yes-or-no line: exactly one of its words, or any text if the line accepts more (a
    fingerprint)."""
    if any(not choice.steps for choice in prompt.choices) or not prompt.choices:
        return _bad_text(prompt, text) or Answer(AnswerKind.TEXT, text)
    return _yes_no(prompt, text.strip())


def _bad_text(prompt: Prompt, text: str) -> Reject | None:
    lines = text.split("\n") if prompt.multiline else [text]
    if not all(is_plain_line(line) for line in lines):
        what = (
            "Text must not contain control, bidirectional or invisible characters"
            if prompt.multiline
            else ("Text must be one line without control, bidirectional or invisible characters")
        )
        return _bad(what + ".")
    most = INSTRUCTION_LIMIT if prompt.idle else TEXT_LIMIT
    if len(text) > most:
        return _bad(f"Text can have at most {most} characters; yours has {len(text)}.")
    if prompt.line_mode and len(text.encode()) >= CANONICAL_LIMIT:
        return _bad(f"A line can have at most {CANONICAL_LIMIT - 1} bytes here; yours has {len(text.encode())}.")
    if prompt.type is PromptType.TYPE_FREE_TEXT and _is_outside(prompt, text.strip()):
        low, high = prompt.constraints["min_choice"], prompt.constraints["max_choice"]
        return _bad(f"The question asks for a number from {low} to {high}.")
    limit = prompt.constraints.get("max_length")
    if isinstance(limit, int) and len(text) > limit:
        return _bad(f"The question takes at most {limit} characters; yours has {len(text)}.")
    return None


LONGEST_NUMBER = 18  # digits; Python converts no more than 4300 of them


def _is_outside(prompt: Prompt, text: str) -> bool:
    """Whether the text is a number outside the range in the question. Other text can be valid as well."""
    low, high = prompt.constraints.get("min_choice"), prompt.constraints.get("max_choice")
    if not (isinstance(low, int) and isinstance(high, int) and text.isdecimal()):
        return False
    digits = text.lstrip("0") or "0"
    return len(digits) > LONGEST_NUMBER or not low <= int(digits) <= high


def _offer(prompt: Prompt) -> str:
    if not prompt.choices:
        return "answer `enter`." if prompt.type is PromptType.TYPE_CONFIRM_ENTER else "answer with text."
    listed = ", ".join(
        choice.value if choice.label in ("", choice.value) else f"{choice.value} ({choice.label})"
        for choice in prompt.choices[:12]
    )
    more = " The list goes on: scroll it with --keys down." if prompt.constraints.get("scrolls") else ""
    return f"Choose one of: {listed}.{more}"


def _bad(sentence: str) -> Reject:
    return Reject(Refusal.BAD_VALUE, sentence[0].upper() + sentence[1:])


# Answers for a form with several fields: `Shell: /bin/zsh; Group: staff`. Fields that are not named stay unchanged.
# Before typing into a field, the host verifies that it has the focus, and afterwards that it shows the new value.

_PAIR = lazy(r"(?:^|[;\n])(?P<label>[^:;=\n]{1,60}+)[:=]")


def decide_form(fields: tuple[FormField, ...], text: str) -> str:
    """Returns one sentence if the text does not fill in this form; otherwise ""."""
    values = form_values(fields, text)
    names = ", ".join(field.label for field in fields)
    if not values:
        return f"This is a form; name its fields, such as `{fields[0].label}: …; {fields[-1].label}: …` (of {names})."
    unknown = [label for label in values if label not in {field.label for field in fields}]
    if unknown:
        return f"There is no field {unknown[0]!r}; it has {names}."
    return "" if all(map(is_plain_line, values.values())) else "A value must be one line without control characters."


def form_values(fields: tuple[FormField, ...], text: str) -> dict[str, str]:
    """Returns each pair of label and value. A label is spelled as in the form if it is unambiguous."""
    known = {field.label.lower(): field.label for field in fields}
    starts = [match for match in _PAIR.finditer(text) if match.start() == 0 or _meant(match["label"], known)]
    if not starts or text[: starts[0].start()].strip():
        return {}
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return {
        _meant(match["label"], known) or match["label"].strip(): text[match.end() : end].strip()
        for match, end in zip(starts, ends, strict=True)
    }


def _meant(said: str, known: Mapping[str, str]) -> str:
    """The label, or the only label that begins like that."""
    low = said.strip().lower()
    begun = [label for name, label in known.items() if name.startswith(low)]
    return known.get(low) or (begun[0] if low and len(begun) == 1 else "")


def encode_form(fields: tuple[FormField, ...], text: str, ending: tuple[Step, ...]) -> tuple[Step, ...]:
    """Encodes a form from top to bottom: moves to a field, empties it, types the value and checks that it is shown;
    finally sends the form."""
    values = form_values(fields, text)
    steps: list[Step] = []
    for field in (field for field in fields if field.label in values):
        value = values[field.label]
        steps += [*(field.below if steps else field.lead), *field.clear]
        shown = Stands(f"{field.before}{value} ") if field.before else When.REDRAWN
        steps += [Step(value.encode(), shown)] if value else []
    return (*steps, *ending)
