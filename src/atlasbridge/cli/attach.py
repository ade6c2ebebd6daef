"""`atlasbridge attach`: bring a running session to this terminal.  Light, like `run`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from atlasbridge.cli.run import UsageError, complain
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home

USAGE = "usage: atlasbridge attach [SESSION]"
HELP = f"""{USAGE}

Show a running session on this terminal, as it is now.  SESSION is its name, its id, or a beginning that no other
has; without it, the only session that runs is meant.  Leave it with the detach key (Ctrl-] d): the session goes on.
"""


def main(words: Sequence[str]) -> int:
    from atlasbridge import bootstrap
    from atlasbridge.cli.by_name import find_running

    try:
        if words and words[0] in ("-h", "--help"):
            sys.stdout.write(HELP)
            return 0
        if len(words) > 1 or (words and words[0].startswith("-")):
            error = UsageError(f"attach does not take {words[-1]!r}")
            error.hint = USAGE
            raise error
        ending = bootstrap.attach_session(find_running(Home.find(os.environ), words[0] if words else ""))
    except AtlasBridgeError as error:
        return complain(str(error), error.hint, error.exit_code)
    return complain(ending.text, ending.hint, ending.status)
