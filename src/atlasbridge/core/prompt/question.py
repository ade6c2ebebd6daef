"""Questions without a screen: converts a caller's question to a prompt, and an answer back to text.

Pure. Such a prompt has no keys: its answer is passed to the caller, so every choice has one empty step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import (
    EXCERPT_LIMIT,
    Answer,
    AnswerKind,
    Choice,
    Prompt,
    PromptType,
    Subject,
    SubjectKind,
    SubjectSource,
    digest_text,
)
from atlasbridge.core.prompt.redact import redact
from atlasbridge.core.values import frozen

HANDED_OVER = (Step(b""),)
MAX_QUESTION = 20_000
MAX_CHOICES = 60
MAX_LABEL = 200
_REFUSES = lazy(r"\W*(?:no|nope|cancel|abort|deny|reject|refuse|decline|stop|skip|don['’]?t|do not|never)\b")


class BadQuestion(AtlasBridgeError):
    exit_code = 2


@frozen
class Question:
    text: str
    choices: tuple[str, ...] = ()
    takes_text: bool = False  # free text is an answer, too; with choices, instead of one of them
    secret: bool = False
    default: str = ""  # the answer if nobody replies: a denial, or "" for none
    folder: str = ""
    kind: SubjectKind = SubjectKind.QUESTION
    about: str = ""  # the whole command, edit or address in question; "": the question itself
    target: str = ""
    complete: bool = True  # whether `about` is complete; only then can rules use it


@frozen
class RemoteQuestion:
    """A question from the network. `identity` is verified; the asker chose the label and the id."""

    session_id: str
    identity: str
    question: Question
    label: str = ""
    ttl_s: float | None = None


@frozen
class Handed:
    """The outcome of a question: "answered", "expired" or "withdrawn"."""

    outcome: str
    answer: Answer | None = None
    by: str = ""


def prompt_of(question: Question) -> Prompt:
    """Returns the prompt that people see. Raises BadQuestion with the reason if it cannot be asked."""
    _check(question)
    choices = tuple(
        Choice(str(at), label, HANDED_OVER, refuses=refuses_label(label))
        for at, label in enumerate(question.choices, 1)
    )
    free = question.takes_text or question.secret
    kind = PromptType.TYPE_YES_NO
    if choices:
        kind = PromptType.TYPE_MULTIPLE_CHOICE
    elif free:
        kind = PromptType.TYPE_FREE_TEXT
    shown = redact(escape_controls(question.text))
    constraints: dict[str, object] = {"secret": True} if question.secret else {}
    if choices and question.takes_text:
        constraints["allows_other"] = True
    return Prompt(
        type=kind,
        score=0.99,
        excerpt=shown if len(shown) <= EXCERPT_LIMIT else shown[: EXCERPT_LIMIT - 1] + "…",
        screen=shown,
        choices=choices,
        constraints=constraints,
        safe_default=_default(question, choices),
        digest=digest_text("\0".join((question.text, question.about, *question.choices))),
        line_mode=False,
        text_steps=HANDED_OVER if free else (),
        end_steps=HANDED_OVER,
        multiline=free,
        subject=_subject(question),
    )


def words_of(prompt: Prompt, answer: Answer) -> str:
    """The answer for the caller: yes, no, a choice's label, or the person's own text."""
    if answer.kind in (AnswerKind.YES, AnswerKind.NO):
        return answer.kind.value
    if answer.kind is AnswerKind.CHOICE:
        return next((choice.label for choice in prompt.choices if choice.value == answer.value), answer.value)
    return answer.value


def refuses(prompt: Prompt, answer: Answer) -> bool:
    if answer.kind is AnswerKind.CHOICE:
        return any(choice.refuses for choice in prompt.choices if choice.value == answer.value)
    return answer.kind is AnswerKind.NO


def refuses_label(label: str) -> bool:
    return _REFUSES.match(label.lower()) is not None


def _check(question: Question) -> None:
    if not question.text.strip():
        raise BadQuestion("the question is empty", 'ask something: atlasbridge ask "Deploy to production?"')
    if len(question.text) > MAX_QUESTION:
        raise BadQuestion(f"a question can have {MAX_QUESTION:,} characters; yours has {len(question.text):,}")
    if len(question.choices) == 1 or len(question.choices) > MAX_CHOICES:
        raise BadQuestion(f"give 2 to {MAX_CHOICES} choices, or none for yes and no")
    labels = [label.strip().lower() for label in question.choices]
    if len(set(labels)) != len(labels) or not all(labels):
        raise BadQuestion("every choice needs a different label")
    if any(len(label) > MAX_LABEL for label in labels):
        raise BadQuestion(f"a choice can have {MAX_LABEL} characters")
    if question.secret and question.choices:
        raise BadQuestion("a secret is typed, not chosen: leave the choices out")


def _default(question: Question, choices: tuple[Choice, ...]) -> str:
    """Only a denial can be the default: a timer never approves."""
    word = question.default.strip().lower()
    if not word:
        return ""
    if not choices and (question.takes_text or question.secret):
        raise BadQuestion("words are never answered by a timer", "leave --default out")
    if not choices:
        if word not in ("n", "no"):
            raise BadQuestion(f"nothing agrees by itself: {question.default!r} cannot be the default", "use no")
        return "n"
    found = [choice for choice in choices if word in (choice.value, choice.label.lower())]
    if len(found) != 1 or not found[0].refuses:
        refusing = ", ".join(choice.label for choice in choices if choice.refuses) or "none of them does"
        raise BadQuestion(f"{question.default!r} is no choice that refuses", f"those that refuse: {refusing}")
    return found[0].value


def _subject(question: Question) -> Subject:
    text = question.about or question.text
    return Subject(
        kind=question.kind,
        text=text,
        folder=question.folder,
        source=SubjectSource.CALLER,
        complete=question.complete,
        shown=redact(escape_controls(text)),
        target=question.target,
    )


# Converts an agent's request to use a tool to a question about the whole command, file or page.
#
# Pure. The names of tools are those of AI CLIs. An unknown tool is shown with all its arguments, because what another
# server's tool calls `command` or `path` is not necessarily a shell command or a file change.

ALLOW, DENY = "Allow", "Deny"
_COMMAND = ("command", "cmd", "script")
# harmless arguments beside a command
_HARMLESS = frozenset({"description", "timeout", "timeout_ms", "run_in_background"})
_FILE = ("file_path", "path", "filename", "notebook_path", "absolute_path")
_ADDRESS = ("url", "uri")
_PLAN = ("plan",)
_KINDS = {
    name: kind
    for kind, names in {
        SubjectKind.COMMAND: "bash shell sh local_shell run_shell_command run_command execute_command execute exec"
        " run_terminal_cmd terminal powershell",
        SubjectKind.EDIT: "edit multiedit write notebookedit write_file edit_file replace create_file str_replace"
        " str_replace_editor patch",
        SubjectKind.FETCH: "webfetch web_fetch fetch",
        SubjectKind.PLAN: "exitplanmode exit_plan_mode",
    }.items()
    for name in names.split()
}


def question_of(tool: str, arguments: Mapping[str, Any], folder: str) -> Question:
    """Asks to allow it once or to deny it. A reply in the person's own words denies it and gives the reason."""
    kind, about, target = about_tool(arguments, _KINDS.get(tool.lower(), SubjectKind.TOOL))
    verb = {
        SubjectKind.COMMAND: "wants to run a command",
        SubjectKind.EDIT: f"wants to change {target}",
        SubjectKind.FETCH: f"wants to open {target}",
        SubjectKind.PLAN: "has a plan",
    }.get(kind, "wants to use a tool")
    more = beside_command(kind, arguments)
    return Question(
        text=f"{tool} {verb}:\n{about}" + (f"\n\n{more}" if more else ""),
        choices=(ALLOW, DENY),
        takes_text=True,
        default=DENY,
        folder=folder,
        kind=kind,
        about=about,
        target=target,
        complete=not more,
    )


def about_tool(arguments: Mapping[str, Any], known: SubjectKind) -> tuple[SubjectKind, str, str]:
    """Returns the kind, the whole text, and the file or address. `known` is the purpose of the tool according to its
    name. If the arguments do not match it, the kind is TOOL."""
    command = _first(arguments, _COMMAND)
    if isinstance(command, list):
        # as a program would run it after splitting it again; shown with all its words
        command = " ".join(map(str, command))
        return SubjectKind.TOOL, _whole(arguments), command
    if known is SubjectKind.COMMAND and isinstance(command, str):
        return known, command, ""
    plan = _first(arguments, _PLAN)
    if known is SubjectKind.PLAN and isinstance(plan, str):
        return known, plan, ""
    path = _first(arguments, _FILE)
    if known is SubjectKind.EDIT and isinstance(path, str) and len(arguments) > 1:
        return known, _whole(arguments), path
    address = _first(arguments, _ADDRESS)
    if known is SubjectKind.FETCH and isinstance(address, str):
        return known, _whole(arguments), address
    return SubjectKind.TOOL, _whole(arguments), ""


def beside_command(kind: SubjectKind, arguments: Mapping[str, Any]) -> str:
    """The other arguments besides a command, such as a folder, its input or an environment. They are shown, and rules
    about commands do not apply, because they cannot know the effect."""
    if kind is not SubjectKind.COMMAND:
        return ""
    own = next(name for name in _COMMAND if name in arguments)
    again = ("commands", [arguments[own]])  # Copilot says the command twice
    others = {name: value for name, value in arguments.items() if name != own and name not in _HARMLESS}
    return _whole({name: value for name, value in others.items() if (name, value) != again})


def _first(arguments: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((arguments[name] for name in names if name in arguments), None)


def _whole(arguments: Mapping[str, Any]) -> str:
    """Every argument with its name; strings are shown as they are, so that a diff or a file is readable."""
    parts = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        parts.append(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}")
    return "\n".join(parts)
