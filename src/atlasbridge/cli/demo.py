"""`atlasbridge demo`: a sample agent under AtlasBridge, a small story of being asked."""

from __future__ import annotations

import os
import subprocess
import sys

import click

from atlasbridge.cli.environment import needs_unix, own_name
from atlasbridge.core.process import own_environ, own_python

WHERE = """A small sample agent starts now. It asks six times: a command, a version,
an edit, a note, a password, and something that you had better refuse.
It touches nothing. Answer each one wherever you like:

  here          type, as always
  on a page     {us} web
  elsewhere     {us} approvals
  by a program  {us} events --json --follow
                {us} reply ID VALUE

The last three in another terminal, or over ssh.
"""


@click.command("demo")
@click.option("--quiet", is_flag=True, help="Do not say where to answer.")
@click.option("--tour", is_flag=True, help="Lean back: each question is answered by itself, from beside the session.")
def command(quiet: bool, tour: bool) -> int:
    """Run a sample agent: a command, an edit, a choice, words, a secret, and something to refuse."""
    from atlasbridge.cli.run_by_zygote import main as run

    needs_unix("demo", "ask something by a script instead: atlasbridge ask QUESTION")
    if not quiet:
        click.echo(WHERE.format(us=own_name()))
    sys.stdout.flush()
    if tour:
        words = own_python("atlasbridge.cli.demo_tour", "demo")
        subprocess.Popen(words, env=own_environ(os.environ), stdin=subprocess.DEVNULL, start_new_session=True)
    return run(["--name", "demo", "--", *own_python("atlasbridge.lab.demo_agent")])
