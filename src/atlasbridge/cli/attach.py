"""`atlasbridge attach`: shows a running session in this terminal. Few imports, like `run`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from atlasbridge.cli.run import UsageError, needs_unix, print_error, render_options, share
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home

OPTIONS = (
    ("--watch", "", "only watch: no key reaches the session, secrets are masked; q leaves"),
    ("--steal", "", "detach every other terminal"),
)
USAGE = "usage: atlasbridge attach [--watch | --steal] [SESSION]"
HELP = f"""{USAGE}

Show a running session on this terminal, as it is now.  SESSION is its name, its id, or a unique beginning;
you can leave it out if only one session runs.  Detach with Ctrl-] d: the session continues, and attach exits with
status 120.
If the session has ended, attach shows its last output and exits with status 1.

Several terminals can share a session. The one that attached last has the keyboard, and the session has its size; the
others show the screen, and Enter takes the keyboard there.

{render_options(OPTIONS)}"""


def main(words: Sequence[str]) -> int:
    from atlasbridge import bootstrap
    from atlasbridge.cli.by_name import NotFound, find_running

    try:
        if words and words[0] in ("-h", "--help"):
            sys.stdout.write(HELP)
            return 0
        switches = [word for word in words if word in ("--watch", "--steal")]
        names = [word for word in words if word not in switches]
        if len(names) > 1 or (names and names[0].startswith("-")):
            raise UsageError(f"attach does not take {names[-1]!r}", USAGE)
        if len(set(switches)) > 1:
            raise UsageError("--watch types nothing, so it cannot take a session from others", USAGE)
        if "--watch" in switches:
            needs_unix("attach --watch", "watch with: atlasbridge web")
        try:
            session = find_running(Home.find(os.environ), names[0] if names else "")
        except NotFound:
            if names and show_ended(names[0]):
                return 1
            raise
        if "--watch" in switches:
            from atlasbridge.cli.full_screen import watch_session

            return print_error(watch_session(session), "", 0)
        if os.name == "posix" and not os.isatty(0):
            hint = "over ssh: ssh -t HOST atlasbridge attach NAME; to read its output: atlasbridge logs NAME"
            raise UsageError("attach needs a terminal on standard input", hint)
        ending = bootstrap.attach_session(session, "--steal" in switches, share)
    except KeyboardInterrupt:
        return 130
    except AtlasBridgeError as error:
        return print_error(str(error), error.hint, error.exit_code)
    return print_error(ending.text, ending.hint, ending.status)


def show_ended(name: str) -> bool:
    """Print the output of an ended session; False if no ended session has this name."""
    from atlasbridge.cli.by_name import NotFound, find_session_id, sessions_of
    from atlasbridge.cli.logs import print_session
    from atlasbridge.cli.printing import hub_client
    from atlasbridge.core.errors import HubUnavailable

    try:
        with hub_client() as hub:
            print_session(hub, find_session_id(name, sessions_of(hub, include_ended=True)))
    except (NotFound, HubUnavailable):
        return False
    return True
