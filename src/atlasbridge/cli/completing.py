"""What a shell may offer for a word: names and ids of sessions and prompts.  No error, and no hub is started for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atlasbridge.core.errors import AtlasBridgeError

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

ANSWER_S = 1.0  # nobody waits longer for a completion


def complete_sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    items = []
    for session in _ask("sessions"):
        words = [session["label"]] if session["label"] and session["label"].isprintable() else []
        about = f"{session['tool']} in {session['cwd']}"
        items += [CompletionItem(word, help=about) for word in [*words, session["session_id"][:8]]]
    return [item for item in items if item.value.lower().startswith(incomplete.lower())]


def complete_prompts(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from atlasbridge.core.visible import visible

    items = [
        CompletionItem(word, help=visible(prompt["excerpt"], keep_lines=False)[:60])
        for prompt in _ask("prompts")
        for word in (prompt["label"], prompt["prompt_id"][:8])
        if word
    ]
    return [item for item in items if item.value.lower().startswith(incomplete.lower())]


def _ask(what: str) -> list[dict[str, Any]]:
    from atlasbridge.cli.printing import home
    from atlasbridge.core.daemon.request import HubClient

    try:
        with HubClient(home(), timeout_s=ANSWER_S) as hub:
            return list(hub.ask(what)[what])
    except AtlasBridgeError:
        return []  # a shell that completes has no place for an error
