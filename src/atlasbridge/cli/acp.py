"""`atlasbridge acp`: the proxy between an editor and its agent. It parses its own arguments, because everything after
`--` belongs to the agent."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from atlasbridge.cli.run import complain
from atlasbridge.core.errors import AtlasBridgeError, ConfigError

USAGE = "usage: atlasbridge acp [--label TEXT] -- AGENT [ARGS...]"
HELP = f"""{USAGE}

Use it as the agent's command in your editor's settings, for example: atlasbridge acp -- gemini --acp
Everything between editor and agent (Agent Client Protocol) passes unchanged; permissions are asked by the hub as well,
and the first answer counts, in the editor or elsewhere.
"""


def main(words: Sequence[str]) -> int:
    try:
        rest = list(words)
        if rest and rest[0] in ("-h", "--help"):
            sys.stdout.write(HELP)
            return 0
        label = ""
        if rest[:1] == ["--label"] and len(rest) > 1:
            label, rest = rest[1], rest[2:]
        if rest[:1] == ["--"]:
            rest = rest[1:]
        if not rest or rest[0].startswith("-"):
            raise ConfigError("acp needs the agent's command", USAGE)
        from atlasbridge.cli.printing import home
        from atlasbridge.integrations.acp import serve

        return serve(home(), rest, sys.stdin.buffer, sys.stdout.buffer, label)
    except AtlasBridgeError as error:
        return complain(str(error), error.hint, error.exit_code)
