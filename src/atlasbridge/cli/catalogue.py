"""Every command, one line about it, and where it lives.  Plain data: `--help` shows it without importing any."""

from __future__ import annotations

from typing import Final

FROM_TABLE: Final = ""  # it is one operation of the hub: the table has its sentence
_CALLED: Final = {"kill": "end"}  # in the table

# name -> (module:attribute, help); in the order of the help page
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "run": ("atlasbridge.cli.run:main", "Run a tool; be asked elsewhere when it waits for you."),
    "attach": ("atlasbridge.cli.attach:main", "Bring a running session to this terminal."),
    "ps": ("atlasbridge.cli.sessions:ps_command", "List sessions."),
    "resume": ("atlasbridge.cli.sessions:resume_command", FROM_TABLE),
    "rename": ("atlasbridge.cli.sessions:rename_command", FROM_TABLE),
    "kill": ("atlasbridge.cli.sessions:kill_command", FROM_TABLE),
    "approvals": ("atlasbridge.cli.approvals:command", "Watch open prompts and answer them with a keystroke."),
    "reply": ("atlasbridge.cli.reply:command", "Answer a prompt."),
    "later": ("atlasbridge.cli.later:command", "Answers that were given for a later moment: list, revoke."),
    "queue": ("atlasbridge.cli.queue:command", "Instructions for when a tool is done: list, add, take back."),
    "ask": ("atlasbridge.cli.ask:command", "Ask a person from a script, and wait for the answer."),
    "away": ("atlasbridge.cli.attention:away_command", FROM_TABLE),
    "here": ("atlasbridge.cli.attention:here_command", FROM_TABLE),
    "people": ("atlasbridge.cli.attention:people_command", FROM_TABLE),
    "notify": ("atlasbridge.cli.attention:notify_command", FROM_TABLE),
    "mcp": ("atlasbridge.cli.mcp:main", "Serve questions of MCP clients (agents, editors)."),
    "acp": ("atlasbridge.cli.acp:main", "Stand between an editor and its agent; answer its permissions anywhere."),
    "policy": ("atlasbridge.cli.policy:command", "Rules that answer for you: check, explain, try, suggest."),
    "grants": ("atlasbridge.cli.grants:command", "What you allowed for a while: add, list, revoke."),
    "web": ("atlasbridge.cli.web:web_command", "Open the web page."),
    "token": ("atlasbridge.cli.web:token_command", "Make, list and revoke tokens for the HTTP API."),
    "setup": ("atlasbridge.cli.setup:command", "Connect a phone or a chat, step by step."),
    "status": ("atlasbridge.cli.status:command", "Show the hub, its channels, sessions and open prompts."),
    "logs": ("atlasbridge.cli.logs:command", "Show what was decided, or the hub's own log."),
    "events": ("atlasbridge.cli.events:command", "Print events, one JSON object per line."),
    "audit": ("atlasbridge.cli.audit:command", "Verify, show or export the audit log."),
    "hub": ("atlasbridge.cli.hub:command", "Start, stop, restart or look at the hub."),
    "fleet": ("atlasbridge.cli.fleet:command", "Join a fleet of machines, or serve one: machines, people, rules, log."),
    "config": ("atlasbridge.cli.config:command", "Show, check or change the configuration."),
    "adapters": ("atlasbridge.cli.adapters:command", "List the tools AtlasBridge knows well."),
    "lab": ("atlasbridge.cli.lab:command", "Prompt Lab: scenarios, recordings, explanations."),
    "doctor": ("atlasbridge.cli.doctor:command", "Check this machine and say what to do."),
    "debug": ("atlasbridge.cli.debug:command", "Make a bundle for a bug report, without secrets."),
    "demo": ("atlasbridge.cli.demo:command", "A sample agent that asks: a small story, nothing is touched."),
    "shim": ("atlasbridge.cli.shim:command", "Typing a tool's name runs it under AtlasBridge."),
    "uninstall": ("atlasbridge.cli.uninstall:command", "Take away what AtlasBridge made on this machine."),
    "completions": ("atlasbridge.cli.completions:command", "Print the completion script of a shell."),
    "version": ("atlasbridge.cli.version:command", "Show the version."),
}


# Commands of earlier versions that have another name now, and the words that lead there.
RENAMED: Final[dict[str, tuple[str, ...]]] = {
    "desk": ("fleet",),
    "join": ("fleet", "join"),
    "leave": ("fleet", "leave"),
}

# What other programs call it, and people who come from them type first.
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
    """What a command does.  The table is imported for the help page only."""
    text = COMMANDS[name][1]
    if text != FROM_TABLE:
        return text
    from atlasbridge.core.operations import HubOperations

    about: str = getattr(HubOperations, _CALLED.get(name, name)).about
    return about


def render_help() -> str:
    """The page of `atlasbridge --help`."""
    width = max(len(name) for name in COMMANDS)
    lines = [
        "Usage: atlasbridge COMMAND [ARGS]...",
        "",
        "  Notices when a terminal program waits for you, asks you where you are, and types your answer.",
        "",
        "  Try: atlasbridge demo, or: atlasbridge run claude",
        "",
        "Commands:",
        *(f"  {name:{width}}  {sentence_of(name)}" for name in COMMANDS),
        "",
        "Every command has --help.",
    ]
    return "\n".join(lines)
