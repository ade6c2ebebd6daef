"""The command line: a group that imports a command only when it is used, and the one place where faults become text."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from atlasbridge.cli.catalogue import CALLED_ELSEWHERE, COMMANDS, RENAMED, render_help, sentence_of
from atlasbridge.cli.completion import plain_parameters
from atlasbridge.cli.environment import lacks_unix
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.process import hide_memory
from atlasbridge.core.session.model import meant, nearest


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in RENAMED:
            return self._renamed(ctx, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        return command if isinstance(command, click.Command) else PlainCommand(cmd_name, command)

    def _renamed(self, ctx: click.Context, said: str) -> click.Command | None:
        """It is understood for one more version, and says how it is called now."""
        first, *rest = RENAMED[said]
        if not ctx.resilient_parsing:
            click.echo(f"note: this command is called atlasbridge {' '.join(RENAMED[said])} now", err=True)
        found = self.get_command(ctx, first)
        for word in rest:
            found = found.commands[word] if isinstance(found, click.Group) else None
        return found

    def get_help(self, ctx: click.Context) -> str:
        return render_help()


class PlainCommand(click.Command):
    """A command that reads its own words, because it must start without click; here only for completion and help."""

    def __init__(self, name: str, run: Callable[[list[str]], int]) -> None:
        super().__init__(name, params=plain_parameters(name), help=sentence_of(name), add_help_option=False)
        self._run = run

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        ctx.args = list(args)
        return []

    def invoke(self, ctx: click.Context) -> int:
        return self._run(ctx.args)


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, help="Show the version.")
@click.pass_context
def cli(ctx: click.Context, version: bool) -> None:
    """Notices when a terminal program waits for you, asks you where you are, and types your answer."""
    if version:
        from atlasbridge import __version__

        click.echo(f"atlasbridge {__version__}")
    elif ctx.invoked_subcommand is None:
        click.echo(render_help())


def root_context(**settings: Any) -> click.Context:
    """For help outside a call of `cli`: click keeps the help option with which a command was first asked."""
    return click.Context(cli, info_name="atlasbridge", **cli.context_settings, **settings)


# What root does for the hub of this machine: as the hub's own user, with the hub's own files.
_FOR_THE_HUB = frozenset(
    {
        *("approvals", "reply", "later", "queue", "grants", "policy", "people", "away", "here", "notify", "events"),
        *("web", "token", "passkey", "setup", "config", "audit", "logs", "status", "doctor", "debug", "ps"),
        *("join", "leave", "fleet"),
    }
)


def become_hub_user(arguments: list[str]) -> None:
    """`sudo atlasbridge passkey add`, where the hub is a user of its own, is that user's command."""
    if not arguments or arguments[0] not in _FOR_THE_HUB or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return
    if os.environ.get("ATLASBRIDGE_HOME") or os.environ.get("ATLASBRIDGE_HUB_SOCKET"):
        return
    from atlasbridge.core.system_setup import read_setup

    if (setup := read_setup()) is None:
        return
    import pwd

    owner = pwd.getpwnam(setup.user)
    os.initgroups(owner.pw_name, owner.pw_gid)
    os.setgid(owner.pw_gid)
    os.setuid(owner.pw_uid)
    os.environ["HOME"] = setup.home


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    become_hub_user(sys.argv[1:] if arguments is None else arguments)
    hide_memory()  # a tool of the same user must not reach into a command that a person runs
    try:
        outcome = cli.main(arguments, prog_name="atlasbridge", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except AtlasBridgeError as error:
        return fail(str(error), error.hint, error.exit_code)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "atlasbridge"
        hint = suggest(error)
        message = error.format_message()
        message = message.partition(" Did you mean")[0] if hint else message  # newer click says it, too
        return fail(message, hint or f"see: {command} --help", 2)
    except click.ClickException as error:
        return fail(error.format_message(), "", 1)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads any more: nothing more to flush
        return 0
    except Exception as error:  # the CLI boundary: a fault of ours is told in two lines, the rest on request
        if os.environ.get("ATLASBRIDGE_DEBUG"):
            raise
        if lacks_unix(error):
            return fail("this command works on Unix only", "see what there is on Windows: docs/howto/windows.md", 1)
        return fail(f"internal error: {type(error).__name__}: {error}", "run it again with ATLASBRIDGE_DEBUG=1", 1)


def suggest(error: click.UsageError) -> str:
    """What was meant by a command that does not exist; for options click says it itself."""
    group = error.ctx.command if error.ctx else None
    if not isinstance(group, click.Group) or "No such command" not in error.format_message():
        return ""
    assert error.ctx is not None
    said = error.format_message().split("'")[1]
    ours = CALLED_ELSEWHERE.get(said.lower()) if isinstance(group, LazyGroup) else None
    near = [ours] if ours else nearest(said, group.list_commands(error.ctx))
    return meant([f"{error.ctx.command_path} {word}" for word in near])


def fail(message: str, hint: str, status: int) -> int:
    """One line that says what is wrong, one that says what to do, as `run` and `attach` write them, too."""
    click.echo(f"atlasbridge: {message}", err=True)
    if hint:
        click.echo(f"  {hint}", err=True)
    return status
