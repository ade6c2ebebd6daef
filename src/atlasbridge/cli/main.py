"""The command line: a group that imports a command on first use, and the only place where exceptions become text."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from atlasbridge.cli.catalogue import CALLED_ELSEWHERE, COMMANDS, RENAMED, render_help, sentence_of
from atlasbridge.cli.columns import terminal_cols
from atlasbridge.cli.help import plain_parameters
from atlasbridge.cli.overview import print_overview
from atlasbridge.cli.printing import Renaming, echo
from atlasbridge.cli.run import print_error
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.process import hide_memory
from atlasbridge.core.session.model import did_you_mean, nearest

NARROWEST = 52  # click makes help no narrower by itself


class LazyGroup(Renaming):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def find(self, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command = getattr(import_module(f"atlasbridge.cli.{module}"), attribute)
        return command if isinstance(command, click.Command) else PlainCommand(name, command)

    def get_help(self, ctx: click.Context) -> str:
        return render_help()


class PlainCommand(click.Command):
    """A command that parses its own arguments, because it must start without click. This object only serves completion
    and help."""

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


@click.group(
    cls=LazyGroup,
    renamed=RENAMED,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--version", is_flag=True, help="Show the version.")
@click.pass_context
def cli(ctx: click.Context, version: bool) -> None:
    """Notices when a terminal program waits for you, asks you where you are, and types your answer."""
    if version:
        from atlasbridge import __version__

        click.echo(f"atlasbridge {__version__}")
    elif ctx.invoked_subcommand is None:
        print_overview()


def root_context(**settings: Any) -> click.Context:
    """A context for help outside of a call of `cli`; click caches the help option of the first context."""
    return click.Context(cli, info_name="atlasbridge", **cli.context_settings, **settings)


# Commands that root runs for the hub of this machine, as the hub's user and with its files.
_FOR_THE_HUB = frozenset(
    {
        *("approvals", "reply", "later", "queue", "grants", "policy", "people", "away", "here", "notify", "events"),
        *("web", "token", "passkey", "setup", "config", "audit", "logs", "status", "doctor", "debug", "ps"),
        *("join", "leave", "fleet"),
    }
)


def become_hub_user(arguments: list[str]) -> None:
    """With a system hub, `sudo atlasbridge passkey add` runs as the hub's user."""
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


# a group without a command prints its help; click before 8.2 does it itself
_NO_COMMAND: tuple[type[click.UsageError], ...] = tuple(
    filter(None, [getattr(click.exceptions, "NoArgsIsHelpError", None)])
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    become_hub_user(sys.argv[1:] if arguments is None else arguments)
    hide_memory()  # a tool of the same user must not read the memory of a person's command
    try:
        cols = terminal_cols()
        narrow: dict[str, Any] = {"terminal_width": cols} if 0 < cols < NARROWEST else {}
        outcome = cli.main(arguments, prog_name="atlasbridge", standalone_mode=False, **narrow)
        return outcome if isinstance(outcome, int) else 0
    except AtlasBridgeError as error:
        return print_error(str(error), error.hint, error.exit_code)
    except _NO_COMMAND as error:
        echo(error.format_message(), err=True)
        return 2
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else _command_path(arguments)
        return print_error(in_our_style(error.format_message()), suggest(error) or f"see: {command} --help", 2)
    except click.ClickException as error:
        return print_error(error.format_message(), "", 1)
    except (click.Abort, KeyboardInterrupt) as stopped:
        if isinstance(stopped, click.Abort) and not sys.stdin.isatty():
            return print_error(
                "a question had no answer on standard input", f"see: {_command_path(arguments)} --help", 2
            )
        if sys.stderr.isatty():
            sys.stderr.write("\n")  # after the ^C that the terminal shows, so that the shell's prompt has its own line
        return 130
    except OSError as error:  # a full disk, a file that cannot be written; click ends a broken pipe itself
        if os.environ.get("ATLASBRIDGE_DEBUG") or not error.strerror:
            raise
        return print_error(": ".join(filter(None, (str(error.filename or ""), error.strerror))), "", 1)
    except Exception as error:  # the CLI boundary: two lines for an internal error, the details on request
        if os.environ.get("ATLASBRIDGE_DEBUG"):
            raise
        if lacks_unix(error):
            return print_error(
                "this command works on Unix only", "see what there is on Windows: docs/howto/windows.md", 1
            )
        return print_error(
            f"internal error: {type(error).__name__}: {error}", "run it again with ATLASBRIDGE_DEBUG=1", 1
        )


def _command_path(arguments: list[str] | None) -> str:
    """The command that was called, for an error that click raises without its context."""
    found: click.Command | None = cli
    context, path = root_context(resilient_parsing=True), "atlasbridge"
    for word in sys.argv[1:] if arguments is None else arguments:
        found = found.get_command(context, word) if isinstance(found, click.Group) else None
        if found is None:
            break
        path += f" {word}"
    return path


# Python modules that exist on Unix only
_UNIX_MODULES = frozenset({"fcntl", "termios", "tty", "pty", "resource", "pwd", "grp"})


def lacks_unix(error: Exception) -> bool:
    """Whether a command failed because a Unix module is missing on Windows."""
    return isinstance(error, ImportError) and error.name in _UNIX_MODULES and not hasattr(os, "fork")


def in_our_style(message: str) -> str:
    """An error of click as the others are written: one line without its suggestion, a capital or a full stop."""
    message = " ".join(message.partition(" Did you mean")[0].split()).removesuffix(".")
    return message[:1].lower() + message[1:]


def suggest(error: click.UsageError) -> str:
    """Suggest a command or an option for an unknown name."""
    if isinstance(error, click.NoSuchOption):
        return did_you_mean(sorted(error.possibilities or ()))
    group = error.ctx.command if error.ctx else None
    if not isinstance(group, click.Group) or "No such command" not in error.format_message():
        return ""
    assert error.ctx is not None
    said = error.format_message().split("'")[1]
    others = CALLED_ELSEWHERE if isinstance(group, LazyGroup) else {}
    near = (
        nearest(said.lower(), [*group.list_commands(error.ctx), *others])
        if said.lower() not in others
        else [said.lower()]
    )
    return did_you_mean(
        [f"{error.ctx.command_path} {word}" for word in dict.fromkeys(others.get(one, one) for one in near)]
    )
