"""`atlasbridge demo`: runs a sample agent under AtlasBridge that asks some questions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import click

from atlasbridge.cli.environment import needs_unix, own_name
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.process import own_environ, own_python

WHERE = """A sample agent starts now. It asks six
times: a command, a version, an edit,
a note, a password, and something you
had better refuse. It touches nothing.

Answer here, as always, or in another
terminal, in any folder, by
  {us}
and one of these:
  web             a page, or your phone
  approvals       all that is asked
  reply ID VALUE  one answer
"""
NEXT = """That was the demo. Next, your own tool:
  {us} {wrap}run claude
"""


@click.command("demo")
@click.option("-q", "--quiet", is_flag=True, help="Do not say where to answer.")
@click.option(
    "--tour", is_flag=True, help="Play the demo by itself: each question is answered from beside the session."
)
def command(quiet: bool, tour: bool) -> int:
    """Run a sample agent: a command, an edit, a choice, words, a secret, and something to refuse."""
    from atlasbridge.cli.printing import home
    from atlasbridge.cli.run import main as run
    from atlasbridge.core.daemon.request import lock_holder

    needs_unix("demo", "ask something by a script instead: atlasbridge ask QUESTION")
    place = home()
    had_hub = lock_holder(place.lock) is not None
    if not quiet:
        click.echo(WHERE.format(us=own_name()))
    sys.stdout.flush()
    if tour:
        words = own_python("atlasbridge.cli.demo_tour", "demo")
        subprocess.Popen(words, env=own_environ(os.environ), stdin=subprocess.DEVNULL, start_new_session=True)
    os.environ["ATLASBRIDGE_SESSION_ZYGOTE"] = "0"  # a fork server for one session would remain running
    status = run(["--name", "demo", "--", *own_python("atlasbridge.lab.demo_agent")], announce=had_hub)
    if not had_hub:
        _stop_idle_hub(place)
    if not quiet:
        narrow = len(own_name()) > shutil.get_terminal_size().columns - len("   run claude")
        click.echo(NEXT.format(us=own_name(), wrap="\\\n    " if narrow else ""))
    return status


def _stop_idle_hub(place: Home) -> None:
    """Stop the hub that the demo started, unless it has other sessions by now."""
    from atlasbridge.core.daemon.request import HubClient
    from atlasbridge.core.daemon.starter import stop_hub

    try:
        with HubClient(place, timeout_s=5.0) as hub:
            if hub.ask("status")["sessions"]:
                return
    except HubUnavailable:
        pass  # it is perhaps still starting
    stop_hub(place)
