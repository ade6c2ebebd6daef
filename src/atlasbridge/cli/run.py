"""The commands that must start fast, with no third-party imports and their own option parsers: `run`, `attach`, `mcp`
and `acp`.

They only parse the command line and print. `core.session` runs a session; if the fork server runs, the session's host
comes from there.
"""

from __future__ import annotations

import os
import sys

from atlasbridge.core.errors import AtlasBridgeError, ConfigError
from atlasbridge.core.values import field, mutable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from atlasbridge.core.fast_imports import socket
    from atlasbridge.core.home import Home
    from atlasbridge.core.session.settings import Plan

RUN_USAGE = "usage: atlasbridge run [OPTIONS] TOOL [ARGS...]     or: atlasbridge run [OPTIONS] -- CMD..."
RUN_OPTIONS = (  # names, the value that an option takes, and its help
    ("--name, --label", "TEXT", "the session's name"),
    ("--channel", "NAME", "notify only this channel (repeatable); none: notify no one"),
    ("--ttl", "DURATION", "how long a prompt of this session waits for an answer"),
    ("--dialect", "NAME", "the detection rules to use (default: by the tool's name)"),
    ("--backend", "NAME", "pty, or conpty (Windows, experimental)"),
    ("-d, --detach", "", "start without a terminal and print the session's id"),
    ("--no-hub", "", "run without the hub: no one is notified"),
    ("--no-keep", "", "forget the output when the session ends; `logs` and `attach` cannot show it"),
)


def _home() -> Home:
    """Imported only when it is needed: a client of the fork server starts without it."""
    from atlasbridge.core.home import Home

    return Home.find(os.environ)


def render_options(options: Sequence[tuple[str, str, str]]) -> str:
    """The last part of a help text. `attach`, `mcp` and `acp` have such a table, too."""
    rows = [(f"{names} {value}".rstrip(), text) for names, value, text in options]
    rows.append(("-h, --help", "show this and exit"))
    width = max(len(left) for left, _ in rows)
    return "options:\n" + "".join(f"  {left:{width}}  {text}\n" for left, text in rows)


RUN_HELP = f"""{RUN_USAGE}

Run an interactive program.  When it waits for a person, AtlasBridge asks you where you are and types your answer.

{render_options(RUN_OPTIONS)}"""
HUB_PATIENCE_S = 10.0
OUTER_S = 2.0  # how long to wait for the hub to know a session; one without a hub never becomes known
_WITH_VALUE = tuple(name for names, value, _ in RUN_OPTIONS if value for name in names.split(", "))
_SWITCHES = tuple(name for names, value, _ in RUN_OPTIONS if not value for name in names.split(", "))
_CONPTY = "conpty"


class UsageError(ConfigError):
    def __init__(self, message: str, hint: str = RUN_USAGE) -> None:
        super().__init__(message, hint)


@mutable
class RunOptions:
    label: str = ""
    channels: list[str] | None = None
    ttl_s: float | None = None
    dialect: str = ""
    backend: str = ""
    detach: bool = False
    hub: bool = True
    keep: bool = True
    help: bool = False
    command: list[str] = field(default_factory=list)


def parse_run(words: Sequence[str]) -> RunOptions:
    """Parse the options before the tool's name; everything after it belongs to the tool."""
    options = RunOptions()
    rest = list(words)
    explicit = False
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            explicit = True
            break
        name, equals, value = word.partition("=")
        if name in ("-h", "--help"):
            options.help = True
            return options
        if name in _WITH_VALUE:
            if not equals and not rest:
                raise UsageError(f"{name} needs a value")
            _set(options, name, value if equals else rest.pop(0))
        elif word in _SWITCHES:
            options.detach |= word in ("-d", "--detach")
            options.hub &= word != "--no-hub"
            options.keep &= word != "--no-keep"
        else:
            raise UsageError(f"there is no option {name}{_suggestion(name)}")
    if not rest or not rest[0]:
        raise UsageError("no program was given")
    options.command = rest if explicit else _without_backend(options, rest)
    return options


def _without_backend(options: RunOptions, command: list[str]) -> list[str]:
    """Accept `run claude --backend conpty`, as in the specification. Only this value, and not after `--`: any other one
    can belong to the tool."""
    for place, word in enumerate(command[1:], 1):
        if word == f"--backend={_CONPTY}" or command[place : place + 2] == ["--backend", _CONPTY]:
            _set(options, "--backend", _CONPTY)
            return command[:place] + command[place + (1 if "=" in word else 2) :]
    return command


def _suggestion(option: str) -> str:
    from atlasbridge.core.session.model import did_you_mean, nearest

    words = did_you_mean(nearest(option, (*_WITH_VALUE, *_SWITCHES)))
    return f": {words}" if words else ""


def _set(options: RunOptions, name: str, value: str) -> None:
    if name in ("--name", "--label"):
        options.label = value
    elif name == "--channel":
        options.channels = [*(options.channels or []), *([] if value == "none" else [value])]
    elif name == "--ttl":
        options.ttl_s = _seconds(value)
    elif name == "--dialect":
        options.dialect = value
    elif value in ("pty", "conpty"):
        options.backend = value
    else:
        raise UsageError(f"there is no backend {value!r}: use pty or conpty")


def _seconds(value: str) -> float:
    from atlasbridge.core.clock import parse_duration

    seconds = parse_duration(value)
    if seconds is None or not 0 < seconds < 1e9:
        raise UsageError(f"--ttl takes a duration such as 30m or a number of seconds above 0, not {value!r}")
    return seconds


def run(words: Sequence[str]) -> int:
    """Use a host of the fork server, which parses the command line itself. Without one, do everything here."""
    from atlasbridge.core.host.spawn_request import request_host

    connection = request_host(words, os.environ)
    return run_here(words) if connection is None else _run_in_forked_host(connection)


def _run_in_forked_host(connection: socket.socket) -> int:
    """The host also reports errors in the command line."""
    from atlasbridge.core.client.client import Client

    client = Client(connection, share=share)
    ending = client.await_start()
    plan = client.plan
    if ending is None and not plan.get("detach"):
        ending = client.run()
    client.close()
    if ending is None:
        return print_detached(client.session_id, bool(plan["hub"]))
    if plan.get("announce"):
        announce_page()
    return print_error(ending.text, ending.hint, ending.status)


def run_here(words: Sequence[str], announce: bool = True) -> int:
    """Run without the fork server. `announce`: the address of a page that was not ready at the start is printed at the
    end."""
    try:
        options = parse_run(words)
        if options.help:
            _print_help(RUN_HELP)
            return 0
        if options.hub and not options.detach and (outer := outer_session()):
            options.hub = False
            sys.stderr.write(f"atlasbridge: inside session {outer}, which asks for this one, too\n")
        return _run(options, announce)
    except AtlasBridgeError as error:
        return print_error(str(error), error.hint, error.exit_code)


def _run(options: RunOptions, announce: bool) -> int:
    from atlasbridge import bootstrap

    plan = make_plan(options)
    unknown = print_notices(options)
    ending = bootstrap.run_session(plan, share)
    if unknown and announce:
        announce_page()  # the hub was perhaps started by this run
    if options.detach and ending.status == 0:
        return print_detached(plan.session_id, options.hub)
    return print_error(ending.text, ending.hint, ending.status)


def share(session_id: str, connection: int) -> str:
    """Show the session while another terminal has the keyboard; the view is imported only then."""
    from atlasbridge.cli.full_screen import share as show

    return show(session_id, connection)


def print_detached(session_id: str, hub: bool) -> int:
    known = not hub or await_hub(session_id)
    sys.stdout.write(f"{session_id}\n")
    return 0 if known else print_error("the hub does not know this session yet", "see: atlasbridge hub status", 0)


def make_plan(options: RunOptions) -> Plan:
    from atlasbridge.core.ids import new_id
    from atlasbridge.core.session.settings import HOSTED, Plan

    hosted = os.environ.get(HOSTED, "") if options.backend == "conpty" else ""
    return Plan(
        command=tuple(options.command),
        session_id=hosted or new_id(),
        hosted=bool(hosted),
        label=options.label,
        channels=None if options.channels is None else tuple(options.channels),
        ttl_s=options.ttl_s,
        dialect=options.dialect,
        backend=options.backend,
        detach=options.detach,
        hub=options.hub,
        keep=options.keep,
        stderr=-1 if options.detach else own_error_stream(),
        cwd=_cwd(),
        environ=dict(os.environ),
    )


def own_error_stream() -> int:
    """Return a copy of standard error for the tool if it is neither a terminal nor the same file as standard output, so
    that errors stay separate. -1: errors go to the tool's terminal."""
    if os.name != "posix":
        return -1
    try:
        errors, output = os.fstat(2), os.fstat(1)
    except OSError:
        return -1
    if os.isatty(2) or (errors.st_dev, errors.st_ino) == (output.st_dev, output.st_ino):
        return -1
    copy = os.dup(2)
    os.set_inheritable(copy, True)
    return copy


def print_notices(options: RunOptions) -> bool:
    """Print messages before the tool draws. Returns True if the page's address is not known yet."""
    warn_of_version(options)
    warn_of_same_name(options)
    if not options.hub or options.detach or not os.isatty(2):
        return False
    announced = announce_page()
    warn_of_older_hub()
    return not announced


def outer_session() -> str:
    """The session whose terminal this is, because it already shows this program and asks its questions; otherwise "".

    The environment variable alone is not enough: a separate terminal (tmux) opened inside inherits it.
    """
    mark = os.environ.get("ATLASBRIDGE_SESSION", "")
    if not mark or not os.isatty(0) or not hasattr(os, "getsid"):
        return ""
    from atlasbridge.core.daemon.request import HubClient, await_session
    from atlasbridge.core.errors import HubUnavailable
    from atlasbridge.core.ids import short_id

    home = _home()
    if (home.sessions / f"{short_id(mark)}.sock").exists():
        await_session(home, mark, OUTER_S)  # it has perhaps only just started, and the hub does not know it yet
    try:
        with HubClient(home, timeout_s=2.0) as hub:
            sessions = hub.ask("sessions", session_id=mark)["sessions"]
    except HubUnavailable:
        return ""
    leader = os.getsid(0)
    here = [item for item in sessions if item["session_id"] == mark and item["pid"] == leader]
    return str(here[0]["label"] or mark[:8]) if here else ""


def await_hub(session_id: str) -> bool:
    """Wait until the hub knows the session, because its id is useless before. Without a terminal there
    is time to wait."""
    from atlasbridge.core.daemon.request import await_session

    return await_session(_home(), session_id, HUB_PATIENCE_S)


def warn_of_version(options: RunOptions) -> None:
    """Warn once, before the tool draws, if this version of a known tool is untested."""
    if options.dialect or not options.hub or not os.isatty(2):
        return
    from atlasbridge import bootstrap

    print_error(bootstrap.warn_of_version(options.command[0]), "", 0)


def warn_of_same_name(options: RunOptions) -> None:
    if not options.hub or not options.label:
        return
    from atlasbridge.cli import by_name
    from atlasbridge.core.daemon.request import HubClient
    from atlasbridge.core.errors import HubUnavailable

    try:
        with HubClient(_home(), timeout_s=2.0) as hub:
            said = by_name.warn_of_same_name(options.label, by_name.sessions_of(hub, name=options.label))
    except HubUnavailable:
        return  # this run starts the hub, so no other session is known
    print_error(said, "", 0)


def warn_of_older_hub() -> None:
    from atlasbridge.core.daemon.request import HINT, look_at_hub

    print_error(look_at_hub(_home()), HINT, 0)


def announce_page() -> bool:
    """Print the page's address once per start of the hub, before the tool draws or after it ended. False if there is no
    page yet."""
    import json

    from atlasbridge.core.daemon.request import lock_holder

    home = _home()
    shown = home.root / "web.shown"
    try:
        record = json.loads((home.root / "web.json").read_text())
        if lock_holder(home.lock) != record["pid"]:
            return False  # written by a hub that has ended; another program could listen there now
        this_start = f"{record['url']} of {record['pid']}"
        if shown.exists() and shown.read_text() == this_start:
            return True
        shown.write_text(this_start)
    except (OSError, ValueError):
        return False  # the page is disabled or not ready yet
    sys.stderr.write(f"atlasbridge: you can also answer at {record['url']} (open it with: {own_name()} web)\n")
    return True


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # the folder was removed, but the tool starts anyway


def print_error(text: str, hint: str, status: int) -> int:
    """Print one line with the problem and one with the solution; return the exit status."""
    if text:
        from atlasbridge.cli.columns import fit, terminal_cols

        lines = f"atlasbridge: {text}" + (f"\n  {hint}" if hint else "")
        sys.stderr.write(fit(lines, terminal_cols(2)) + "\n")
    return status


def _print_help(text: str) -> None:
    from atlasbridge.cli.columns import fit, terminal_cols

    sys.stdout.write(fit(text, terminal_cols()))


def own_name() -> str:
    """How to call `atlasbridge` in another terminal: the plain name only if the shell would find it."""
    import shutil

    if shutil.which("atlasbridge"):
        return "atlasbridge"
    # in a forked host, sys.argv belongs to the fork server
    beside = os.path.join(os.path.dirname(sys.executable), "atlasbridge")
    return _from_anywhere(beside if os.access(beside, os.X_OK) else sys.argv[0])


def _from_anywhere(command: str) -> str:
    """A command that also works in another folder, because a new terminal opens in the home folder."""
    import re
    import shlex

    path, own = os.path.abspath(command), os.path.expanduser("~")
    short = f"~{path.removeprefix(own)}" if path.startswith(f"{own}/") else path
    return short if re.fullmatch(r"~?[\w./@%+,-]+", short) else shlex.quote(path)


def needs_unix(what: str, instead: str = "") -> None:
    """Raise an error on Windows. `instead` is what a person can do there."""
    if not hasattr(os, "fork"):
        raise AtlasBridgeError(f"{what} works on Unix only", instead)


# `atlasbridge attach`: shows a running session in this terminal.


ATTACH_OPTIONS = (
    ("--watch", "", "only watch: no key reaches the session, secrets are masked; q leaves"),
    ("--steal", "", "detach every other terminal"),
)
ATTACH_USAGE = "usage: atlasbridge attach [--watch | --steal] [SESSION]"
ATTACH_HELP = f"""{ATTACH_USAGE}

Show a running session on this terminal, as it is now.  SESSION is its name, its id, or a unique beginning;
you can leave it out if only one session runs.  Detach with Ctrl-] d: the session continues, and attach exits with
status 120.
If the session has ended, attach shows its last output and exits with status 1.

Several terminals can share a session. The one that attached last has the keyboard, and the session has its size; the
others show the screen, and Enter takes the keyboard there.

{render_options(ATTACH_OPTIONS)}"""


def attach(words: Sequence[str]) -> int:
    from atlasbridge import bootstrap
    from atlasbridge.cli.by_name import NotFound, find_running

    try:
        if words and words[0] in ("-h", "--help"):
            _print_help(ATTACH_HELP)
            return 0
        switches = [word for word in words if word in ("--watch", "--steal")]
        names = [word for word in words if word not in switches]
        if len(names) > 1 or (names and names[0].startswith("-")):
            raise UsageError(f"attach does not take {names[-1]!r}", ATTACH_USAGE)
        if len(set(switches)) > 1:
            raise UsageError("use either --watch or --steal", ATTACH_USAGE)
        if "--watch" in switches:
            needs_unix("attach --watch", "watch with: atlasbridge web")
        try:
            session = find_running(_home(), names[0] if names else "")
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


# `atlasbridge mcp` and `atlasbridge acp`: the servers for agents and editors on standard input and output. Clients
# have short timeouts.


LABEL_OPTIONS = (("--label", "TEXT", "the name of the asking program; by default the client's own"),)
MCP_USAGE = "usage: atlasbridge mcp [--label TEXT]"
MCP_HELP = f"""{MCP_USAGE}

Serve ask_human, notify_human and approve to an MCP client on standard input and output.

{render_options(LABEL_OPTIONS)}"""
ACP_USAGE = "usage: atlasbridge acp [--label TEXT] -- AGENT [ARGS...]"
ACP_HELP = f"""{ACP_USAGE}

Use it as the agent's command in your editor's settings, for example: atlasbridge acp -- gemini --acp
Everything between editor and agent (Agent Client Protocol) passes unchanged; permissions are asked by the hub as well,
and the first answer counts, in the editor or elsewhere.

{render_options(LABEL_OPTIONS)}"""


def mcp(words: Sequence[str]) -> int:
    return _serve(words, MCP_HELP, _serve_mcp)


def acp(words: Sequence[str]) -> int:
    return _serve(words, ACP_HELP, _serve_acp)


def _serve(words: Sequence[str], help_text: str, serve: Callable[[str, list[str]], int]) -> int:
    if words and words[0] in ("-h", "--help"):
        _print_help(help_text)
        return 0
    label, rest = "", list(words)
    if rest and rest[0].startswith("--label="):
        label = rest.pop(0).partition("=")[2]
    elif rest[:1] == ["--label"] and len(rest) > 1:
        label, rest = rest[1], rest[2:]
    try:
        return serve(label, rest)
    except KeyboardInterrupt:
        return 130
    except AtlasBridgeError as error:
        return print_error(str(error), error.hint, error.exit_code)


def _serve_mcp(label: str, rest: list[str]) -> int:
    if rest:
        raise ConfigError(f"mcp does not take {rest[0]!r}", MCP_USAGE)
    from atlasbridge.core.process import hide_memory
    from atlasbridge.integrations.mcp_server import McpServer

    hide_memory()
    McpServer(_home(), sys.stdout.buffer, label).run(sys.stdin.buffer)
    return 0


def _serve_acp(label: str, rest: list[str]) -> int:
    """Everything after `--` belongs to the agent."""
    agent = rest[1:] if rest[:1] == ["--"] else rest
    if not agent or agent[0].startswith("-"):
        raise ConfigError("acp needs the agent's command", ACP_USAGE)
    from atlasbridge.integrations.acp import serve

    return serve(_home(), agent, sys.stdin.buffer, sys.stdout.buffer, label)


LIGHT_COMMANDS = {  # name -> what runs it, its help, its options
    "run": (run, RUN_HELP, RUN_OPTIONS),
    "attach": (attach, ATTACH_HELP, ATTACH_OPTIONS),
    "mcp": (mcp, MCP_HELP, LABEL_OPTIONS),
    "acp": (acp, ACP_HELP, LABEL_OPTIONS),
}
