"""All commands with their summaries and modules. Plain data, so that `--help` imports no command."""

from __future__ import annotations

from typing import Final

FROM_TABLE: Final = ""  # the command is an operation of the hub; the table contains its summary
_CALLED: Final = {"kill": "end"}  # the name in the table

# group -> name -> (module:attribute of this package, help), in the order of the help page; the first group fits on one
# screen
GROUPS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Every day": {
        "run": ("run:run", "Run a tool, and be notified elsewhere when it waits for you."),
        "attach": ("run:attach", "Show a running session in this terminal."),
        "ps": ("sessions:ps_command", "List sessions."),
        "logs": ("logs:command", "Show what a session printed, also after its end, or the audit log."),
        "kill": ("sessions:kill_command", "End sessions."),
        "approvals": ("reply:approvals_command", "Watch open prompts and answer them with a keystroke."),
        "reply": ("reply:command", "Answer a prompt."),
        "ask": ("ask:command", "Ask a person from a script, and wait for the answer."),
        "web": ("web:web_command", "Open the web page."),
        "setup": ("setup:command", "Connect a phone or a chat, step by step."),
        "status": ("hub:status_command", "Show the hub, its channels, sessions and open prompts."),
        "doctor": ("doctor:command", "Check this machine and say what to do."),
    },
    "Sessions and answers": {
        "resume": ("sessions:resume_command", "Resume sessions that Ctrl-Z has stopped."),
        "rename": ("sessions:rename_command", FROM_TABLE),
        "queue": ("reply:queue_command", "Instructions for an idle tool: list, add, remove."),
        "later": ("reply:later_command", "Scheduled answers: list, remove."),
        "away": ("sessions:away_command", FROM_TABLE),
        "here": ("sessions:here_command", FROM_TABLE),
        "notify": ("sessions:notify_command", FROM_TABLE),
    },
    "Rules and people": {
        "policy": ("policy:command", "Rules that answer for you: check, explain, test, suggest."),
        "grants": ("policy:grants_command", "Permissions for a while: list, add, remove."),
        "people": ("sessions:people_command", FROM_TABLE),
        "passkey": ("web:passkey_command", "Passkeys that sign approvals: list, add, accept, remove."),
        "token": ("web:token_command", "Tokens for the HTTP API: list, add, remove."),
        "audit": ("logs:audit_command", "Verify, show or export the audit log."),
    },
    "Programs and machines": {
        "events": ("logs:events_command", "Print events, one JSON object per line."),
        "mcp": ("run:mcp", "Serve questions of agents and editors (MCP)."),
        "acp": ("run:acp", "Run an editor's agent, and answer its permission requests anywhere."),
        "fleet": (
            "fleet:command",
            "Join a fleet of machines, or serve one: machines, people, rules, log.",
        ),
    },
    "Set up and maintain": {
        "hub": ("hub:command", "Start, stop, restart or show the hub."),
        "config": ("config:command", "Show, check or change the configuration."),
        "shim": (
            "install:shim_command",
            "Run a tool under AtlasBridge when you type its name: list, add, remove.",
        ),
        "adapters": ("lab:adapters_command", "List the tools AtlasBridge knows well."),
        "lab": ("lab:command", "Prompt Lab: scenarios, recordings, explanations."),
        "demo": ("demo:command", "Try it: a sample agent asks six questions and changes nothing."),
        "debug": ("doctor:debug_command", "Write a bundle for a bug report, without secrets."),
        "uninstall": ("install:uninstall_command", "Remove what AtlasBridge installed on this machine."),
        "completions": ("help:completions_command", "Print the completion script of a shell."),
        "help": ("help:command", "Show the help of a command, or write the man pages."),
        "version": ("help:version_command", "Show the version."),
    },
}
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    name: found for group in GROUPS.values() for name, found in group.items()
}


# Old names of commands, and the arguments that replace them.
RENAMED: Final[dict[str, str]] = {"desk": "fleet", "join": "fleet join", "leave": "fleet leave"}

# Names of the same command in other programs, which new users often type first.
CALLED_ELSEWHERE: Final[dict[str, str]] = {
    **dict.fromkeys(("sessions", "list", "ls"), "ps"),
    **dict.fromkeys(("prompts", "pending", "inbox"), "approvals"),
    **dict.fromkeys(("answer", "approve", "deny", "respond", "send"), "reply"),
    **dict.fromkeys(("start", "launch", "exec", "wrap"), "run"),
    **dict.fromkeys(("stop", "end"), "kill"),
    **dict.fromkeys(("connect", "open"), "attach"),
    **dict.fromkeys(("daemon", "serve", "server"), "hub"),
    **dict.fromkeys(("ui", "dashboard", "page"), "web"),
    **dict.fromkeys(("init", "pair", "login"), "setup"),
    **dict.fromkeys(("settings", "configure"), "config"),
    **dict.fromkeys(("history", "log"), "logs"),
    "rules": "policy",
    "tools": "adapters",
    "watch": "events",
}


def sentence_of(name: str) -> str:
    """The summary of a command. The table is imported for the help page only."""
    text = COMMANDS[name][1]
    if text != FROM_TABLE:
        return text
    from atlasbridge.core.operations import HubOperations

    about: str = getattr(HubOperations, _CALLED.get(name, name)).about
    return about


def render_help() -> str:
    """The page of `atlasbridge --help`: the everyday commands fit on the first screen."""
    width = max(len(name) for name in COMMANDS)
    lines = [
        "Usage: atlasbridge COMMAND [ARGS]...",
        "",
        "  Notices when a terminal program waits for you, asks you where you are, and types your answer.",
        "  Try: atlasbridge demo, or: atlasbridge run claude",
    ]
    for title, group in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:{width}}  {sentence_of(name)}" for name in group)]
    return "\n".join([*lines, "", "Help for a command: atlasbridge help COMMAND"])
