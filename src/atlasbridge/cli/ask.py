"""`atlasbridge ask`: a script asks a person a question. It blocks; its output and exit status are the answer."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import IO, TYPE_CHECKING, Any

import click

from atlasbridge.cli.printing import DURATION, home, print_line

if TYPE_CHECKING:
    from atlasbridge.core.prompt.model import Prompt
    from atlasbridge.core.prompt.question import Handed, Question
    from atlasbridge.integrations.open_question import OpenQuestion

NO, FAULT, EXPIRED, WITHDRAWN = 1, 2, 4, 5
_LEAVES = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@click.command("ask")
@click.argument("question", required=False)
@click.option("--choice", "choices", multiple=True, metavar="LABEL", help="A choice; give two or more.")
@click.option(
    "--text", "takes_text", is_flag=True, help="Ask for text; with --choice, people can also answer with text."
)
@click.option("--secret", is_flag=True, help="Ask for a secret: never in a chat, never stored.")
@click.option("--ttl", "ttl_s", type=DURATION, help="How long to wait, such as 90, 30m or 2h.")
@click.option(
    "--default", "default", default="", metavar="ANSWER", help="The answer if no one answers in time; it must refuse."
)
@click.option("--label", default="", help="The name of the asking program; by default the CI job or the script.")
@click.option(
    "--file", "source", type=click.File("r"), help="Ask several questions from a JSON file, one after the other."
)
@click.option("--hook", is_flag=True, help="Decide a tool's permission request: a PermissionRequest hook.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per answer.")
def command(
    question: str | None,
    choices: tuple[str, ...],
    takes_text: bool,
    secret: bool,
    ttl_s: float | None,
    default: str,
    label: str,
    source: IO[str] | None,
    hook: bool,
    as_json: bool,
) -> int:
    """Ask a person and wait for the answer.

    Without --choice or --text it is a yes-or-no question.  The answer is printed.  Exit status: 0 yes or
    answered, 1 no, 4 no answer in time, 5 withdrawn, 2 it could not be asked.

    --hook reads the request of Codex or Claude Code from standard input and prints the decision; every fault is a
    denial, and the exit status is 0.
    """
    from atlasbridge.core.prompt.question import Question

    if [question is None, source is None, not hook].count(False) != 1:
        raise click.UsageError("give either a QUESTION, --file FILE or --hook")
    if hook:
        return _decide_hook(label, ttl_s)
    asked: dict[str, Any] = {"ttl_s": ttl_s, "label": label}
    if source is None:
        asked["question"] = Question(question or "", choices, takes_text, secret, default, os.getcwd())
        return _ask_all([asked], as_json)
    return _ask_all([asked | one for one in _read(source)], as_json)


def _read(source: IO[str]) -> list[dict[str, Any]]:
    """Read [{"question", "choices", "text", "secret", "ttl", "default", "label", "name"}, ...]. All items are checked
    before the first is asked."""
    from atlasbridge.core.prompt.question import Question, prompt_of

    try:
        items = json.load(source)
    except ValueError as error:
        raise click.UsageError(f"{source.name} is not JSON: {error}")
    if not isinstance(items, list) or not items or not all(isinstance(item, dict) for item in items):
        raise click.UsageError(f"{source.name} must contain a list of questions")
    known = {"question", "choices", "text", "secret", "ttl", "default", "label", "name"}
    out = []
    for number, item in enumerate(items, 1):
        if unknown := sorted(item.keys() - known):
            raise click.UsageError(f"question {number} has {unknown[0]!r}; known are {', '.join(sorted(known))}")
        question = Question(
            text=str(item.get("question", "")),
            choices=tuple(str(label) for label in item.get("choices", ())),
            takes_text=bool(item.get("text")),
            secret=bool(item.get("secret")),
            default=str(item.get("default", "")),
            folder=os.getcwd(),
        )
        prompt_of(question)
        extra: dict[str, Any] = {"question": question, "name": str(item.get("name", number))}
        if item.get("ttl") is not None:
            extra["ttl_s"] = DURATION.convert(item["ttl"], None, None)
        if item.get("label"):
            extra["label"] = str(item["label"])
        out.append(extra)
    return out


def _ask_all(items: list[dict[str, Any]], as_json: bool) -> int:
    """Ask one question after the other. Stop at the first one without an answer and return its status."""
    status = 0
    for item in items:
        answered = _ask(item, as_json)
        if answered > NO:
            return answered
        status = max(status, answered)
    return status


def _ask(item: dict[str, Any], as_json: bool) -> int:
    from atlasbridge.core.errors import AtlasBridgeError

    try:
        prompt, handed = _hand_over(item["question"], item["label"], item["ttl_s"])
    except AtlasBridgeError as error:
        error.exit_code = FAULT  # 1 would mean "no", but no person said that
        raise
    return _report(prompt, handed, str(item.get("name", "")), as_json)


def _hand_over(question: Question, label: str, ttl_s: float | None) -> tuple[Prompt, Handed]:
    from atlasbridge.core.prompt.question import prompt_of
    from atlasbridge.integrations.caller_label import origin_of
    from atlasbridge.integrations.open_question import OpenQuestion

    prompt = prompt_of(question)
    open_question = OpenQuestion(home(), origin_of("ask", label, ("atlasbridge", "ask", question.text), os.environ))
    _withdraw_on_signals(open_question)
    return prompt, open_question.ask(prompt, ttl_s)


def _decide_hook(label: str, ttl_s: float | None) -> int:
    """A tool ignores the output of a hook that fails, so a fault is a denial like any other."""
    from atlasbridge.core.errors import AtlasBridgeError
    from atlasbridge.core.prompt.mcp_messages import deny, verdict
    from atlasbridge.core.prompt.question import question_of, words_of

    try:
        told = json.load(sys.stdin)
        asked = question_of(str(told["tool_name"]), dict(told["tool_input"]), str(told.get("cwd") or os.getcwd()))
        prompt, handed = _hand_over(asked, label, ttl_s)
        words = words_of(prompt, handed.answer) if handed.answer is not None else ""
        decision = json.loads(verdict(handed, words, asked, told["tool_input"]))
    except (AtlasBridgeError, OSError, ValueError, LookupError, TypeError) as error:
        why = f"the request has no {error}" if isinstance(error, LookupError) else error
        decision = json.loads(deny(f"No one could be asked: {why}."))
    decision.pop("updatedInput", None)  # Codex denies a request whose input was changed
    print_line({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})
    return 0


def _withdraw_on_signals(open_question: OpenQuestion) -> None:
    for number in _LEAVES:
        signal.signal(number, lambda *_: open_question.withdraw())


def _report(prompt: Prompt, handed: Handed, name: str, as_json: bool) -> int:
    from atlasbridge.core.prompt.question import refuses, words_of

    answer = handed.answer
    words = words_of(prompt, answer) if answer is not None else ""
    if as_json:
        named = {"name": name} if name else {}
        print_line({**named, "outcome": handed.outcome, "answer": words if answer else None, "by": handed.by or None})
    elif answer is not None:
        click.echo(words)
    else:
        click.echo("No one answered in time." if handed.outcome == "expired" else "Withdrawn.", err=True)
    if answer is None:
        return EXPIRED if handed.outcome == "expired" else WITHDRAWN
    return NO if refuses(prompt, answer) else 0
