"""A person's words become an answer that is valid for its prompt, and an answer becomes exact keys.

`decide_answer` is used by the reply gate, `encode_answer` by the session host.  Words are never typed into a menu:
they name one of its choices, or are refused with the list.
"""

from __future__ import annotations

import re

from atlasbridge.core.escape import escape_controls, is_plain_line
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.form_fields import decide_form, encode_form
from atlasbridge.core.prompt.keys import ENTER, Step, When, parse_keys
from atlasbridge.core.prompt.model import Answer, AnswerKind, Choice, Prompt, PromptType, Refusal, Reject
from atlasbridge.core.prompt.redact import redact
from atlasbridge.core.vocabulary import answers_as, begins, letter_of

# An answer as people read it, in receipts and records: the words of the choice, never the value of a secret.

LABEL_LIMIT = 200
SECRET_LABEL = "(a secret)"
HERE = "cli:local"  # a command of this machine, whoever typed it
TIMER = "auto:timeout"  # who decided, where nobody did in time
KEY_LABELS = {"enter": "Enter key", "esc": "Esc key", "ctrl-c": "Ctrl-C key"}
_PLAIN = {AnswerKind.YES: "y", AnswerKind.NO: "n", AnswerKind.ENTER: "Enter"}


def label_answer(prompt: Prompt, answer: Answer) -> str:
    """What is kept and told of an answer; a long text is cut, and says so."""
    if prompt.secret:
        return SECRET_LABEL
    flat = escape_controls(redact(_words(prompt, answer)), keep_lines=False)
    return flat if len(flat) <= LABEL_LIMIT else f"{flat[: LABEL_LIMIT - 1]}…"


def _words(prompt: Prompt, answer: Answer) -> str:
    key = "enter" if answer.kind is AnswerKind.ENTER else answer.value if answer.kind is AnswerKind.KEYS else ""
    if key in KEY_LABELS and prompt.type in (PromptType.TYPE_FREE_TEXT, PromptType.TYPE_UNKNOWN):
        return KEY_LABELS[key]  # not the word, which could have been typed as well
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
    """ "2. No, and tell Claude" where the tool counts; a letter that only repeats its label says nothing more."""
    for choice in prompt.choices:
        if choice.value == value:
            same = value == choice.label or choice.label[:1].lower() == value.lower()
            return choice.label if same else f"{value}. {choice.label}"
    return ""


def call_person(identity: str, place: str = "", name: str = "") -> str:
    """In a sentence: by name where one is known.  Of a command of this machine its place says all that is known."""
    if identity == HERE and not name:
        return f"a person at {place or 'this machine'}"
    who = name or identity or "somebody"
    return f"{who} ({place})" if place else who


def quote_answer(label: str) -> str:
    """In a sentence: quoted, but what stands for a secret is no quotation."""
    if label in KEY_LABELS.values():
        return f"the {label}"
    return "a secret" if label == SECRET_LABEL else f'"{label}"'


TEXT_LIMIT = 1000
INSTRUCTION_LIMIT = 4096  # of what an idle tool is told to do next
CANONICAL_LIMIT = 4095  # bytes; a longer line is cut silently by the line discipline
PASTE_START, PASTE_END = b"\x1b[200~", b"\x1b[201~"
_ENTER = {"enter", "return", "⏎", "↵", "\r", "\n"}
_PRESSED = {"esc": "esc", "escape": "esc", "⎋": "esc", "ctrl-c": "ctrl-c", "ctrl+c": "ctrl-c", "^c": "ctrl-c"}
_KEYED = (PromptType.TYPE_FREE_TEXT, PromptType.TYPE_UNKNOWN, PromptType.TYPE_CONFIRM_ENTER)
_COUNTED = lazy(r"^\d{1,3}[:.)] ")  # the number of a list, where it is a part of the label
_BRACKETS = lazy(r"[\[\]()]")
_WORDS = lazy(r"[\w'’-]+")
_NEGATES = lazy(r"\b(?:no|not|don['’]?t|never|without|skip|except|but)\b", re.IGNORECASE)
_APART = lazy(r"\s{2,}")  # between a name and what it stands for: `c  Gamma`
_KEY_BEHIND = lazy(r"(?<!\s)\s*+\([^()]{1,8}\)$")  # `No (esc)`
_DECLINES = lazy(r"(?:don['’]?t|do not|not|never|stop|cancel|abort|quit|exit)\b")


def decide_answer(prompt: Prompt, value: str, *, as_text: bool = False, as_keys: bool = False) -> Answer | Reject:
    """What `value` means at this prompt; a `Reject` with one sentence when it means nothing."""
    if as_keys:
        return _keys(prompt, value)
    if as_text:
        return _text(prompt, value)
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
    """ "enter", "esc" or "ctrl-c" where a word names that key and the prompt takes it; "": it is a word like others.

    A secret may be any word, and a question without a terminal has no keys.
    """
    low = word.strip().lower()
    key = "enter" if low in _ENTER else _PRESSED.get(low, "")
    handed_over = bool(prompt.end_steps) and not any(step.keys for step in prompt.end_steps)
    return "" if prompt.secret or handed_over or prompt.type not in _KEYED else key


def encode_answer(prompt: Prompt, answer: Answer) -> tuple[Step, ...]:
    """The keys, in steps.  Text and its Enter are two events: raw programs take one write for a paste."""
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
    """From top to bottom: the last step of a choice marks its box (and unmarks it), those before it lead there."""
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
    )  # also a secret: an Enter that comes sooner finds some boxes empty
    typed = (Step(data, When.DRAINED if prompt.line_mode else drawn),) if data else ()
    return (*prompt.text_steps, *typed, *ending)


def _keys(prompt: Prompt, value: str) -> Answer | Reject:
    """Keys are typed as given; a key that is itself one of the offered choices chooses it, with the Enter it needs."""
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
    numbered = not prompt.choices  # otherwise a number is a place, and No may stand first
    if _agrees(low) or (numbered and low == "1") or _is_letter(prompt, low, "agree"):
        return Answer(AnswerKind.YES)
    if _declines(low) or (numbered and low == "2") or _is_letter(prompt, low, "refuse"):
        return Answer(AnswerKind.NO)
    defaults = [choice for choice in prompt.choices if choice.default]
    if low in _ENTER and defaults:  # a highlight may have moved since; a line's own default has not
        return Answer(AnswerKind.ENTER) if prompt.line_mode else Answer(AnswerKind.CHOICE, defaults[0].value)
    chosen = _find(prompt, word) or _by_letter(prompt, low)
    return Answer(AnswerKind.CHOICE, chosen.value) if chosen and chosen.steps else _bad(_offer(prompt))


def _by_letter(prompt: Prompt, letter: str) -> Choice | None:
    """The choice for which this very letter is typed, as the question says it: `[t/N]`."""
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
    """By value, by label, by position."""
    low = word.lower()
    exact = [
        *(choice for choice in prompt.choices if choice.value == word),
        *(choice for choice in prompt.choices if low in (choice.value.lower(), choice.label.lower())),
        *(choice for choice in prompt.choices if low == _COUNTED.sub("", choice.label).lower()),
        *(choice for choice in prompt.choices if low == _BRACKETS.sub("", choice.label).lower()),  # `(o)verwrite`
    ]
    if exact:
        return exact[0]
    parts = [choice for choice in prompt.choices if low in _APART.split(choice.label.lower())]
    if len(parts) == 1:
        return parts[0]
    counted_otherwise = [choice for choice in prompt.choices if choice.label.startswith(f"{word}: ")]
    if word.isdigit() and len(counted_otherwise) == 1:
        return counted_otherwise[0]  # a list that counts from 0 has a 0
    counted = any(choice.value.isdigit() for choice in prompt.choices)  # then no other number is meant
    if word.isdigit() and not counted and 1 <= int(word) <= len(prompt.choices):
        return prompt.choices[int(word) - 1]
    return None


def _by_beginning(prompt: Prompt, word: str) -> Choice | None:
    """An unambiguous beginning of a label; yes and no are never taken for one, nor "don't" for "Don't ask again"."""
    low = word.lower()
    if _agrees(low) or _declines(low) or len(low) < 3:
        return None
    labels = [(choice, _BRACKETS.sub("", choice.label).lower()) for choice in prompt.choices]
    begun = [choice for choice, label in labels if label.startswith(low)]
    if not begun:  # a word of one label alone, unless that says more than it: "ask" is not "Yes, and don't ask again"
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
    """A letter of another language, at a question that is asked in it."""
    return len(letter) == 1 and any(letter_of(letter, kind, choice.label) for choice in prompt.choices)


def _by_meaning(prompt: Prompt, word: str) -> Choice | None:
    """A plain yes or no at a menu: its only consent, or refusal, that is for this once."""
    low = word.lower()
    if _declines(low) or _is_letter(prompt, low, "refuse"):
        return _refusal(prompt)
    if _agrees(low) or _is_letter(prompt, low, "agree"):
        agreeing = [choice for choice in prompt.choices if begins("agree", choice.label) and not choice.refuses]
        once = [choice for choice in agreeing if not choice.always]
        preferred = once if len(once) == 1 else [choice for choice in once if choice.default]
        return preferred[0] if len(preferred) == 1 else None
    if low in _ENTER:
        defaults = [choice for choice in prompt.choices if choice.default]
        return defaults[0] if len(defaults) == 1 else None
    return None


def _refusal(prompt: Prompt) -> Choice | None:
    """The one that says no; of several the one that says no and nothing else, before one that only leaves."""
    refusing = [choice for choice in prompt.choices if choice.refuses and not choice.always]
    plain = [choice for choice in refusing if answers_as(_KEY_BEHIND.sub("", choice.label).rstrip(" .!"), "refuse")]
    taking = [choice for choice in refusing if choice.steps]  # the others want words of their own
    saying = [choice for choice in taking if not begins("cancel", choice.label)]
    for group in (refusing, plain, taking, saying):
        if len(group) == 1:
            return group[0]
    return None


def _text(prompt: Prompt, text: str) -> Answer | Reject:
    if prompt.type is PromptType.TYPE_YES_NO:
        return _spelled(prompt, text)
    typed = prompt.text_steps or prompt.line_mode or prompt.constraints.get("allows_other")
    if prompt.type is PromptType.TYPE_MULTIPLE_CHOICE and not typed:
        return _bad("This is a menu; words are not typed into it. " + _offer(prompt))
    if prompt.type is PromptType.TYPE_UNKNOWN and not prompt.end_steps:
        return _bad('Which keys this waits for is not known; type them with --keys, for example --keys "q".')
    if prompt.type is PromptType.TYPE_CONFIRM_ENTER and _says_no(prompt, text):
        return _bad("Only Enter is asked here, and it would follow your no; say `leave` to leave it alone.")
    if prompt.fields:
        why = decide_form(prompt.fields, text)
        return _bad(why) if why else Answer(AnswerKind.TEXT, text)
    return _bad_text(prompt, text) or Answer(AnswerKind.TEXT, text)


def _says_no(prompt: Prompt, text: str) -> bool:
    """A refusal that the question does not offer itself."""
    low = text.strip().lower().rstrip(".!")
    question = (prompt.question or prompt.excerpt).rpartition("\n")[2]
    offered = re.search(rf"\b(?:type|enter|say|or)\W+{re.escape(low)}\b", question, re.IGNORECASE)
    return (_declines(low) or _DECLINES.fullmatch(low) is not None) and offered is None


def _spelled(prompt: Prompt, text: str) -> Answer | Reject:
    """Text at a yes-or-no line: exactly one of its words, or text for a line that takes more (a fingerprint)."""
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
        return _bad(f"Text can have at most {most} characters; this has {len(text)}.")
    if prompt.line_mode and len(text.encode()) >= CANONICAL_LIMIT:
        return _bad(f"A line can have at most {CANONICAL_LIMIT - 1} bytes here; this has {len(text.encode())}.")
    if prompt.type is PromptType.TYPE_FREE_TEXT and _is_outside(prompt, text.strip()):
        low, high = prompt.constraints["min_choice"], prompt.constraints["max_choice"]
        return _bad(f"The question asks for a number from {low} to {high}.")
    limit = prompt.constraints.get("max_length")
    if isinstance(limit, int) and len(text) > limit:
        return _bad(f"The question asks for at most {limit} characters; this has {len(text)}.")
    return None


def _is_outside(prompt: Prompt, text: str) -> bool:
    """A number, and not one of those that the question names; other words it may take as well."""
    low, high = prompt.constraints.get("min_choice"), prompt.constraints.get("max_choice")
    return isinstance(low, int) and isinstance(high, int) and text.isdigit() and not low <= int(text) <= high


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
