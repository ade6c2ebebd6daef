"""`atlasbridge demo`: a sample agent under AtlasBridge that asks one question of every type."""

from __future__ import annotations

import os
import shutil
import sys

import click

from atlasbridge.core.own_python import own_python

WHERE = """A small sample agent starts now. It asks five questions: yes or no, Enter, a menu, a text, a password.
Answer each one wherever you like:

  here           type, as always
  on a page      {us} web          (in another terminal: opens the page in your browser)
  elsewhere      {us} approvals    (in another terminal, or over ssh)
  by a program   {us} events --json --follow    and    {us} reply ID VALUE
"""


@click.command("demo")
@click.option("--quiet", is_flag=True, help="Do not say where to answer.")
def command(quiet: bool) -> int:
    """Run a sample agent that asks one question of every type."""
    from atlasbridge.cli.run import main as run

    if not quiet:
        click.echo(WHERE.format(us=_our_name()))
    sys.stdout.flush()
    return run(["--name", "demo", "--", *own_python("atlasbridge.lab.demo_agent")])


def _our_name() -> str:
    """What to type for us in another terminal: the name alone only where the shell would find it."""
    return "atlasbridge" if shutil.which("atlasbridge") else os.path.relpath(sys.argv[0])
