"""`atlasbridge demo`: a sample agent under AtlasBridge that asks one question of every type."""

from __future__ import annotations

import sys

import click

WHERE = """A small sample agent starts now. It asks five questions: yes or no, Enter, a menu, a text, a password.
Answer each one wherever you like:

  here           type, as always
  on a page      atlasbridge web          (in another terminal: opens the page in your browser)
  elsewhere      atlasbridge approvals    (in another terminal, or over ssh)
  by a program   atlasbridge events --json --follow    and    atlasbridge reply ID VALUE
"""


@click.command("demo")
@click.option("--quiet", is_flag=True, help="Do not say where to answer.")
def command(quiet: bool) -> int:
    """Run a sample agent that asks one question of every type."""
    from atlasbridge.cli.run import main as run

    if not quiet:
        click.echo(WHERE)
    sys.stdout.flush()
    return run(["--name", "demo", "--", sys.executable, "-m", "atlasbridge.lab.demo_agent"])
