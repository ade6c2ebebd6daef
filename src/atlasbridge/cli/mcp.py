"""`atlasbridge mcp`: the MCP server on standard input and output. Few imports, because its clients
have short timeouts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from atlasbridge.core.errors import AtlasBridgeError, ConfigError

USAGE = "usage: atlasbridge mcp [--label TEXT]"
HELP = f"""{USAGE}

Serve ask_human, notify_human and approve to an MCP client on standard input and output.

options:
  --label TEXT  the name of the asking program; by default the client's own
  -h, --help    show this and exit
"""


def main(words: Sequence[str]) -> int:
    from atlasbridge.cli.run import complain

    try:
        rest = list(words)
        if rest and rest[0] in ("-h", "--help"):
            sys.stdout.write(HELP)
            return 0
        label = ""
        if rest and (rest[0].startswith("--label=") or (rest[0] == "--label" and len(rest) > 1)):
            _, has_value, value = rest[0].partition("=")
            label, rest = (value, rest[1:]) if has_value else (rest[1], rest[2:])
        if rest:
            raise ConfigError(f"mcp does not take {rest[0]!r}", USAGE)
        from atlasbridge.core.home import Home
        from atlasbridge.core.process import hide_memory
        from atlasbridge.integrations.mcp_server import McpServer

        hide_memory()
        McpServer(Home.find(os.environ), sys.stdout.buffer, label).run(sys.stdin.buffer)
        return 0
    except KeyboardInterrupt:
        return 130
    except AtlasBridgeError as error:
        return complain(str(error), error.hint, error.exit_code)
