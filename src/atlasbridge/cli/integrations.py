"""`atlasbridge mcp` and `atlasbridge acp`: the servers for agents and editors on standard input and output.

They parse their own arguments. Few imports, because clients have short timeouts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from atlasbridge.cli.run import print_error, render_options
from atlasbridge.core.errors import AtlasBridgeError, ConfigError

OPTIONS = (("--label", "TEXT", "the name of the asking program; by default the client's own"),)
MCP_USAGE = "usage: atlasbridge mcp [--label TEXT]"
MCP_HELP = f"""{MCP_USAGE}

Serve ask_human, notify_human and approve to an MCP client on standard input and output.

{render_options(OPTIONS)}"""
ACP_USAGE = "usage: atlasbridge acp [--label TEXT] -- AGENT [ARGS...]"
ACP_HELP = f"""{ACP_USAGE}

Use it as the agent's command in your editor's settings, for example: atlasbridge acp -- gemini --acp
Everything between editor and agent (Agent Client Protocol) passes unchanged; permissions are asked by the hub as well,
and the first answer counts, in the editor or elsewhere.

{render_options(OPTIONS)}"""


def mcp(words: Sequence[str]) -> int:
    return _serve(words, MCP_HELP, _serve_mcp)


def acp(words: Sequence[str]) -> int:
    return _serve(words, ACP_HELP, _serve_acp)


def _serve(words: Sequence[str], help_text: str, serve: Callable[[str, list[str]], int]) -> int:
    if words and words[0] in ("-h", "--help"):
        sys.stdout.write(help_text)
        return 0
    label, rest = "", list(words)
    if rest and rest[0].startswith("--label="):
        label = rest.pop(0).partition("=")[2]
    elif rest[:1] == ["--label"] and len(rest) > 1:
        label, rest = rest[1], rest[2:]
    try:
        return serve(label, rest)
    except KeyboardInterrupt:
        return 130
    except AtlasBridgeError as error:
        return print_error(str(error), error.hint, error.exit_code)


def _serve_mcp(label: str, rest: list[str]) -> int:
    if rest:
        raise ConfigError(f"mcp does not take {rest[0]!r}", MCP_USAGE)
    from atlasbridge.core.home import Home
    from atlasbridge.core.process import hide_memory
    from atlasbridge.integrations.mcp_server import McpServer

    hide_memory()
    McpServer(Home.find(os.environ), sys.stdout.buffer, label).run(sys.stdin.buffer)
    return 0


def _serve_acp(label: str, rest: list[str]) -> int:
    """Everything after `--` belongs to the agent."""
    agent = rest[1:] if rest[:1] == ["--"] else rest
    if not agent or agent[0].startswith("-"):
        raise ConfigError("acp needs the agent's command", ACP_USAGE)
    from atlasbridge.core.home import Home
    from atlasbridge.integrations.acp import serve

    return serve(Home.find(os.environ), agent, sys.stdin.buffer, sys.stdout.buffer, label)
