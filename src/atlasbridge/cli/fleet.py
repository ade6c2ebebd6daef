"""`atlasbridge fleet`: joins or leaves a fleet; runs a server and manages its machines, people, rules and log."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from atlasbridge.bootstrap import build_tracer, plan_server_chats
from atlasbridge.cli.printing import (
    DURATION,
    Renaming,
    home,
    json_option,
    last_option,
    print_found,
    print_json,
    print_table,
    scope_option,
)
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.distribution import install_line
from atlasbridge.core.errors import AtlasBridgeError, ChannelError, ConfigError, HubUnavailable
from atlasbridge.core.fleet_wire import encode_invitation, parse_invitation
from atlasbridge.core.home import Home

T = TypeVar("T")
P = ParamSpec("P")

database_option = click.option(
    "--database",
    "database_url",
    envvar="ATLASBRIDGE_FLEET_DATABASE",
    required=True,
    help="postgresql://user@host/name; also from ATLASBRIDGE_FLEET_DATABASE.",
)
url_option = click.option(
    "--url",
    envvar="ATLASBRIDGE_FLEET_URL",
    default="http://127.0.0.1:8460",
    show_default=True,
    help="The address at which machines and people reach the server; also from ATLASBRIDGE_FLEET_URL.",
)
config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    envvar="ATLASBRIDGE_FLEET_CONFIG",
    help="Channels and escalation policies for all machines (TOML); tokens in it as env:NAME or file:PATH.",
)


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Wraps imports that need this extra, and names it in the error."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ConfigError(f"this needs {missing.name}", install_line(extra)) from None


SERVER = "fleet-server"

if TYPE_CHECKING:
    import atlasbridge.fleet.server.audit
    import atlasbridge.fleet.server.chat_cache
    import atlasbridge.fleet.server.database
    import atlasbridge.fleet.server.machines
    import atlasbridge.fleet.server.migrate
    import atlasbridge.fleet.server.oidc
    import atlasbridge.fleet.server.people
    import atlasbridge.fleet.server.server  # noqa: F401
    from atlasbridge.fleet import server
else:

    class ServerModules:
        """A module is imported when a command uses it, because the commands' help must work without what it needs."""

        def __getattr__(self, name: str) -> Any:
            with needs(SERVER):
                return import_module(f"atlasbridge.fleet.server.{name}")

    server = ServerModules()


def work(
    database_url: str,
    call: Callable[Concatenate[server.database.Database, P], Awaitable[T]],
    *args: P.args,
    **more: P.kwargs,
) -> T:
    """Run a function with a connection to the fleet's database."""

    async def run() -> T:
        database = server.database.Database(database_url, most=2)
        await database.open()
        try:
            return await call(database, *args, **more)
        finally:
            await database.close()

    return asyncio.run(run())


def operator() -> str:
    """The person who runs a command of the server, for its audit log."""
    return f"cli:{getpass.getuser()}"


@click.group("fleet")
def command() -> None:
    """One page, one log and one set of rules for many machines."""


# commands of a member


def reload_hub(here: Home, start: bool) -> None:
    """Reload the hub, so that a membership applies at once. `start` also starts it, and refuses programs inside a
    session."""
    from atlasbridge.core.daemon.request import ensure_hub

    try:
        if start:
            ensure_hub(here)
        with HubClient(here) as hub:
            hub.ask("reload")
    except HubUnavailable:
        if start:
            raise


@command.command()
@click.argument("url")
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input instead of the address.")
@click.option("--name", default="", help="The name of this machine in the fleet; its host name by default.")
@click.option("--ca", type=click.Path(exists=True, path_type=Path), help="Another certificate (PEM) to trust.")
@click.option("--no-screens", is_flag=True, help="Do not show the screens of sessions to the fleet.")
@click.option(
    "--rules",
    type=click.Choice(["tighten", "allow", "none"]),
    default="tighten",
    show_default=True,
    help="What the fleet's rules are allowed to do here.",
)
@click.option("--ephemeral", is_flag=True, help="A container or a job: removed from the fleet once it is silent.")
def join(
    url: str, token_stdin: bool, name: str, ca: Path | None, no_screens: bool, rules: str, ephemeral: bool
) -> None:
    """Join the fleet at URL, with the address that `atlasbridge fleet invite` printed there."""
    with needs("fleet"):
        from atlasbridge.fleet.member.joining import join as join_fleet
        from atlasbridge.fleet.member.membership import read_membership, write_membership
    invitation = parse_invitation(url, sys.stdin.readline() if token_stdin else "")
    here = home()
    here.prepare()
    known = read_membership(here.root)
    if known is not None:
        raise ConfigError(
            f"this machine belongs to the fleet at {known.url} already", "leave it: atlasbridge fleet leave"
        )
    reload_hub(here, start=True)
    trusted = ca.read_text(encoding="ascii") if ca else ""
    called = name or socket.gethostname()
    membership = asyncio.run(
        join_fleet(invitation, called, ca=trusted, screens=not no_screens, rules=rules, ephemeral=ephemeral)
    )
    write_membership(here.root, membership)
    reload_hub(here, start=False)
    click.echo(
        f"This machine is {membership.name!r} in the fleet at {membership.url}, which shows its questions from now on."
    )


@command.command()
@click.option("--force", is_flag=True, help="Leave even if the server cannot be told.")
def leave(force: bool) -> None:
    """Leave the fleet: only this machine shows its questions, and its key no longer works."""
    with needs("fleet"):
        from atlasbridge.fleet.member.joining import RefusedByServer
        from atlasbridge.fleet.member.joining import leave as leave_fleet
        from atlasbridge.fleet.member.membership import forget_membership, read_membership
    here = home()
    try:
        membership = read_membership(here.root)
    except ConfigError:
        if not force:
            raise
        forget_membership(here.root)
        click.echo(
            "The membership could not be read and was removed. The server lists this machine until it is revoked."
        )
        return
    if membership is None:
        raise ConfigError("this machine belongs to no fleet", "join one with: atlasbridge fleet join URL")
    reload_hub(here, start=True)
    try:
        asyncio.run(leave_fleet(membership))
    except RefusedByServer:
        pass  # the server had removed it already
    except ChannelError as error:
        if not force:
            raise ChannelError(
                f"the server was not told: {error}", "leave all the same: atlasbridge fleet leave --force"
            ) from None
    forget_membership(here.root)
    reload_hub(here, start=False)
    click.echo(f"This machine left the fleet at {membership.url}.")


# commands of the server


@command.command()
@database_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8460, show_default=True, help="0: any free one.")
@click.option(
    "--url",
    envvar="ATLASBRIDGE_FLEET_URL",
    default="",
    help="The address behind a proxy; also from ATLASBRIDGE_FLEET_URL.",
)
@click.option("--cert", default="", help="A certificate (PEM), for TLS.")
@click.option("--key", default="", help="The key of the certificate (PEM).")
@click.option("--connections", default=10, show_default=True, help="The most connections to PostgreSQL.")
@click.option(
    "--metrics-token-file", type=click.Path(exists=True, path_type=Path), help="The token that reads /metrics."
)
@click.option(
    "--keep",
    type=DURATION,
    default="90d",
    show_default=True,
    help="How long ended prompts and sessions are kept; the log stays.",
)
@click.option("--keep-days", type=float, hidden=True)
@click.option(
    "--log-format",
    type=click.Choice(["auto", "json", "text"]),
    default="auto",
    show_default=True,
    help="auto: text on a terminal, else JSON lines.",
)
@config_option
def serve(
    database_url: str,
    host: str,
    port: int,
    url: str,
    cert: str,
    key: str,
    connections: int,
    metrics_token_file: Path | None,
    keep: float,
    keep_days: float | None,
    log_format: str,
    config_path: Path | None,
) -> None:
    """Serve the fleet.  Run as many servers as you like against one database."""
    from atlasbridge.core.daemon.log_file import open_log

    # as for a hub in the foreground: log records of libraries and of machines are filtered and escaped
    level = os.environ.get("ATLASBRIDGE_LOG_LEVEL", "INFO")
    as_json = log_format == "json" or (log_format == "auto" and not sys.stderr.isatty())
    open_log(Path(os.devnull), level, 0, 0, to_terminal=True, as_json=as_json)
    token = metrics_token_file.read_text().strip() if metrics_token_file else ""
    oidc = _read_oidc(config_path) if config_path else None
    place = server.server.Address(
        host, port, url, cert, key, token, connections, keep if keep_days is None else keep_days * 86_400.0, oidc
    )
    read_plan = partial(plan_server_chats, config_path, os.environ) if config_path else None
    tracer = build_tracer("atlasbridge-fleet", os.environ)
    started = lambda known_as: click.echo(f"The fleet server is at {known_as}")  # noqa: E731
    try:
        server.server.run(server.server.serve(database_url, place, started, read_plan, tracer.span if tracer else None))
    finally:
        if tracer:
            tracer.close()


def _read_oidc(config_path: Path) -> Any:
    from atlasbridge.config.server import read_oidc

    found = read_oidc(config_path, os.environ)
    if found is None:
        return None
    return server.oidc.OidcSettings(**found)


@command.command()
@database_option
@click.option(
    "--saved", is_flag=True, help="Confirm that there is a backup: tables of an older version can be changed."
)
@click.option("--role", default="", help="The database user of the servers; it gets the least rights that they need.")
def migrate(database_url: str, saved: bool, role: str) -> None:
    """Create the tables, or update them to this version, as the owner of the database."""
    version = work(database_url, server.migrate.migrate, saved)
    if role:
        work(database_url, server.migrate.grant_role, role)
    click.echo(f"The fleet's tables have version {version}" + (f"; {role} is allowed to serve." if role else "."))


@command.command("rotate-key")
@database_option
def rotate_key(database_url: str) -> None:
    """Replace the server's key.  Machines follow the next time they call, without joining again."""
    public = work(database_url, server.machines.rotate_key, operator())
    click.echo(f"The server's key is {public} now. Invitations that were made before are still valid.")


@command.command()
@database_option
@click.argument("file", type=click.Path(path_type=Path))
def backup(database_url: str, file: Path) -> None:
    """Save the fleet's database to FILE, while the servers run."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        _postgres("pg_dump", "--format=custom", "--no-owner", "--file", str(draft), "--dbname", database_url)
        os.replace(draft, file)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}", "choose another file") from None
    finally:
        draft.unlink(missing_ok=True)
    click.echo(f"Saved to {file}. It has the server's key in it: keep it as you keep the database.")


@command.command()
@database_option
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(database_url: str, file: Path) -> None:
    """Restore the fleet's database from FILE.  Stop the servers first; machines then send their open prompts again."""
    serving = "SELECT count(*) AS serving FROM pg_stat_activity WHERE application_name = %s"
    serving += " AND datname = current_database()"
    if work(database_url, lambda database: database.rows(serving, server.server.SERVING))[0]["serving"]:
        raise AtlasBridgeError("a fleet server uses this database", "stop every `atlasbridge fleet serve` first")
    _postgres(
        "pg_restore",
        *("--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error"),
        *("--dbname", database_url, str(file)),
    )
    found = work(database_url, server.audit.verify)
    if not hasattr(found, "entries"):
        raise AtlasBridgeError(f"its audit log is not whole: entry {found.seq} {found.problem}", "use another backup")
    work(database_url, server.machines.part_all)
    click.echo(f"The database is as {file} has it, with {found.entries} entries in its audit log. Start the servers.")
    click.echo("People, machines and tokens that were removed since then are back: look, and remove them again.")


def _postgres(program: str, *words: str) -> None:
    """Run one of PostgreSQL's own programs."""
    found = shutil.which(program) or next(iter(sorted(glob(f"/usr/lib/postgresql/*/bin/{program}"))[::-1]), "")
    if not found:
        raise ConfigError(f"{program} is not here", "install PostgreSQL's client programs (postgresql-client)")
    done = subprocess.run([found, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        told = (done.stderr.strip() or program).splitlines()
        raise AtlasBridgeError(f"{program}: {told[0].removeprefix(f'{program}: ')}", "nothing was changed")


@command.command()
@database_option
@url_option
@click.option("--name", default="", help="Only for a machine with this name.")
@click.option("--ephemeral", is_flag=True, help="For containers and jobs: removed once silent.")
@click.option("--ttl", type=DURATION, default="1h", show_default=True, help="How long the invitation is valid.")
@click.option("--minutes", type=float, hidden=True)
@click.option("--uses", default=1, show_default=True, help="How many machines can use it.")
@json_option
def invite(
    database_url: str,
    url: str,
    name: str,
    ephemeral: bool,
    ttl: float,
    minutes: float | None,
    uses: int,
    as_json: bool,
) -> None:
    """Print the command that joins a machine to the fleet; it works once."""
    ttl_s = ttl if minutes is None else minutes * 60
    address = _invite(database_url, url, name=name, ephemeral=ephemeral, ttl_s=ttl_s, uses=uses)
    if as_json:
        print_json({"address": address})
    else:
        click.echo(f"atlasbridge fleet join '{address}'")


def _invite(database_url: str, url: str, **terms: Any) -> str:
    async def make(database: Any) -> str:
        token = await server.machines.invite(database, operator(), **terms)
        async with database.transaction() as connection:
            identity = await server.machines.identity_of(connection)
        return encode_invitation(url, token, identity.public_key)

    return work(database_url, make)


@command.command()
@database_option
@config_option
@json_option
def chats(database_url: str, config_path: Path | None, as_json: bool) -> None:
    """Check the file of `serve --config`, and list its channels with the people who take part."""
    if config_path is None:
        raise click.UsageError("no file was given: use --config FILE, or set ATLASBRIDGE_FLEET_CONFIG")
    directory = work(database_url, server.chat_cache.load_directory)
    plan = plan_server_chats(config_path, os.environ, directory.by_channel())
    found: list[dict[str, Any]] = [
        {
            "channel": channel.name,
            "people": sorted(directory.in_channel(channel.name)),
            "shared": not channel.personal,
        }
        for channel in plan.channels
    ] + [{"channel": name, "people": [], "shared": False} for name in plan.idle]
    if as_json:
        carries = work(database_url, server.database.carried)
        print_json(
            {
                "carried": carries,
                "channels": found,
                "escalation": [escalation_policy.name for escalation_policy in plan.policy.attention.escalation],
            }
        )
        return
    rows = [(one["channel"], ", ".join(one["people"]) or "no one", _how(one)) for one in found]
    print_table(("channel", "people", "how"), rows, "the file has no channel, such as [channels.telegram]")


def _how(found: dict[str, Any]) -> str:
    if not found["people"]:
        return f"not used: atlasbridge fleet people identity NAME {found['channel']}:…"
    return "one room: it is told what all of them can see" if found["shared"] else "each is told what they can see"


@command.command()
@database_option
@click.argument("file", required=False, type=click.Path(exists=True, path_type=Path))
@json_option
def rules(database_url: str, file: Path | None, as_json: bool) -> None:
    """Send FILE (as policy.toml) to all machines; without it, show what they use."""
    if file is not None:
        from atlasbridge.config.hub import read_rules

        read_rules(file)  # reports errors with their line
        text = file.read_text(encoding="utf-8")
        digest = work(database_url, server.machines.set_rules, text, operator())
        click.echo(f"The rules {digest[:19]} go to all machines.")
        return
    newest = work(database_url, server.machines.newest_rules)
    found = work(database_url, server.machines.listing)
    using = [{"machine": one["name"], "digest": one["policy"], "fault": one["policy_fault"]} for one in found]
    if as_json:
        print_json({"digest": newest.digest if newest else "", "machines": using})
        return
    rows = [
        (one["machine"], "newest" if newest and one["digest"] == newest.digest else "other", one["fault"])
        for one in using
    ]
    print_table(("machine", "rules", "fault"), rows, "no machine has joined yet")


# machines


@command.group(cls=Renaming, renamed={"revoke": "remove"}, invoke_without_command=True)
@click.option("--database", "database_url", envvar="ATLASBRIDGE_FLEET_DATABASE", default="")
@click.option("-a", "--all", "include_gone", is_flag=True, help="Also machines that left or were removed.")
@json_option
@click.pass_context
def machines(ctx: click.Context, database_url: str, include_gone: bool, as_json: bool) -> None:
    """List the machines, or decide about one of them."""
    if ctx.invoked_subcommand is not None:
        return
    if not database_url:
        raise click.UsageError("no database was given: use --database URL, or set ATLASBRIDGE_FLEET_DATABASE")
    found = work(database_url, server.machines.listing, include_gone)
    told = [{**_plain(one), "state": _state(one)} for one in found]
    columns = ("machine", "state", "open", "sessions", "version", "audit log", "notice")
    print_found(told, as_json, columns, _machine, "no machine has joined yet")


def _machine(one: dict[str, Any]) -> tuple[object, ...]:
    known = (one["name"], one["state"], one["open_prompts"], one["sessions"], one["version"])
    return *known, one["log_fault"] or "verified", one["limited"] or one["went_back"]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    hidden = ("public_key", "generation", "epoch", "epochs", "token", "token_offered", "accepts", "expelled", "others")
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else value
        for name, value in row.items()
        if name not in hidden
    }


def _state(row: dict[str, Any]) -> str:
    if row["gone_at"]:
        return str(row["gone_why"])
    if row["held"] == "restored":
        return f"restored to an earlier state: fleet machines accept-restore {row['name']}"
    if row["held"]:
        return f"two machines with one key: fleet machines split {row['name']}"
    if row["connected_to"]:
        return "connected"
    seen = row["seen_at"]
    return f"not heard of since {seen.astimezone():%Y-%m-%d %H:%M:%S %Z}" if seen else "has never called"


def _unknown(machine: str) -> AtlasBridgeError:
    return AtlasBridgeError(f"there is no machine {machine!r}", "list them with: atlasbridge fleet machines")


@machines.command("list")
@database_option
@click.option("-a", "--all", "include_gone", is_flag=True, help="Also machines that left or were removed.")
@json_option
@click.pass_context
def list_machines(ctx: click.Context, database_url: str, include_gone: bool, as_json: bool) -> None:
    """List the machines; `fleet machines` alone does the same."""
    ctx.invoke(machines, database_url=database_url, include_gone=include_gone, as_json=as_json)


@machines.command("remove")
@database_option
@click.argument("machine")
def remove_machine(database_url: str, machine: str) -> None:
    """Remove MACHINE: its key no longer works, and the server closes its open prompts."""
    gone = work(database_url, server.machines.remove, machine, operator(), "revoked")
    if gone is None:
        raise _unknown(machine)
    click.echo(f"{machine} was removed from the fleet.")


@machines.command()
@database_option
@click.argument("machine")
@click.argument("allowed", type=click.Choice(["on", "off"]))
def screens(database_url: str, machine: str, allowed: str) -> None:
    """Allow or forbid people to look at MACHINE's screens."""
    if not work(database_url, server.machines.allow_screens, machine, allowed == "on"):
        raise _unknown(machine)
    click.echo(f"Screens of {machine}: {allowed}.")


@machines.command("accept-restore")
@database_option
@click.argument("machine")
def accept_restore(database_url: str, machine: str) -> None:
    """Confirm that MACHINE was restored to an earlier state on purpose: it continues and resends its open prompts."""
    place = work(database_url, server.machines.accept_restore, machine, operator())
    if place is None:
        raise AtlasBridgeError(f"{machine!r} is not waiting for this", "look at: atlasbridge fleet machines")
    click.echo(f"{machine} goes on: {place} enters the fleet again within half a minute.")


@machines.command()
@database_option
@url_option
@click.argument("machine")
@click.option("--keep", type=int, help="The number of the machine that continues.")
def split(database_url: str, url: str, machine: str, keep: int | None) -> None:
    """Choose which of several machines with one key continues as MACHINE; the others must join again."""
    sides = work(database_url, server.machines.sides, machine)
    if not sides:
        raise AtlasBridgeError(f"{machine!r} has its key to itself", "look at: atlasbridge fleet machines")
    if keep is None:
        print_table(("number", "machine"), list(enumerate(sides, 1)), "")
        click.echo(f"Choose one: atlasbridge fleet machines split {machine} --keep NUMBER")
        return
    kept = work(database_url, server.machines.split, machine, keep - 1, operator())
    if kept is None:
        raise AtlasBridgeError(f"there is no number {keep}", f"choose 1 to {len(sides)}")
    click.echo(f"{kept} goes on as {machine}. On each of the others run:")
    click.echo("  atlasbridge fleet leave --force")
    click.echo(f"  atlasbridge fleet join '{_invite(database_url, url, uses=len(sides) - 1, ttl_s=86_400.0)}'")


# people

machine_option = click.option(
    "--machine", default="*", show_default=True, help="The machine's name; * matches any text."
)
folder_option = click.option("--folder", default="*", show_default=True, help="This folder and everything below it.")


@command.group()
def people() -> None:
    """People, teams, and what they are allowed to see and answer."""


_ROLES = {"admin": "an administrator", "member": "a member"}


@people.command("add")
@database_option
@url_option
@click.argument("name")
@click.option("--admin", is_flag=True, help="Admins can see and answer everything.")
def add_person(database_url: str, url: str, name: str, admin: bool) -> None:
    """Add NAME, and print a link to the page for them."""
    role = "admin" if admin else "member"
    before = {one["name"]: one["role"] for one in work(database_url, server.people.listing)}.get(name, role)
    work(database_url, server.people.add, name, role, operator())
    if before != role:
        click.echo(f"{name} was {_ROLES[before]}, and is {_ROLES[role]} now.", err=True)
    _print_link(database_url, url, name)


@people.command("link")
@database_option
@url_option
@click.argument("name")
def new_link(database_url: str, url: str, name: str) -> None:
    """Print a new link to the page for NAME: valid once, for a quarter of an hour."""
    _print_link(database_url, url, name)


def _print_link(database_url: str, url: str, name: str) -> None:
    known = {one["name"] for one in work(database_url, server.people.listing)}
    if name not in known:
        raise AtlasBridgeError(f"there is no person named {name!r}", "add them with: atlasbridge fleet people add NAME")
    token = work(database_url, server.people.login_link, name)
    click.echo(f"{url.rstrip('/')}/#login={token}")


@people.command("token")
@database_option
@click.argument("name")
@click.argument("token")
@scope_option("What a program with it is allowed to do; never more than NAME.")
def new_token(database_url: str, name: str, token: str, scope: str) -> None:
    """Print a new API token for NAME, called TOKEN and valid for a year."""
    secret, _ = work(database_url, server.people.add_token, name, token, scope, operator())
    click.echo(secret)


@people.command("logins")
@database_option
@click.argument("name", default="")
@json_option
def list_logins(database_url: str, name: str, as_json: bool) -> None:
    """List the browsers and API tokens that are logged in, of NAME or of everyone."""
    found = work(database_url, server.people.logins, name)
    if as_json:
        found = [{key: value for key, value in _plain(one).items() if key != "token_hash"} for one in found]
    columns = ("login", "person", "kind", "name", "scope", "last used", "until")
    print_found(found, as_json, columns, _login, "no one is logged in")


def _login(one: dict[str, Any]) -> tuple[str, ...]:
    used = f"{one['seen_at'].astimezone():%Y-%m-%d %H:%M %Z}" if one["seen_at"] else "never used"
    who = (one["id"], one["person"], one["kind"], one["name"], one["scope"])
    return *who, used, f"{one['expires_at']:%Y-%m-%d}"


@people.command("logout")
@database_option
@click.argument("login")
def end_login(database_url: str, login: str) -> None:
    """End one LOGIN, a browser's or a token, by its id from `fleet people logins`."""
    if not work(database_url, server.people.end_login, login, operator()):
        raise AtlasBridgeError(f"there is no login {login!r}", "list them with: atlasbridge fleet people logins")
    click.echo(f"The login {login} has ended.")


@people.command("remove")
@database_option
@click.argument("name")
def remove_person(database_url: str, name: str) -> None:
    """Revoke NAME's access, and log them out everywhere."""
    if not work(database_url, server.people.remove, name, operator()):
        raise AtlasBridgeError(f"there is no person named {name!r}", "list them with: atlasbridge fleet people list")
    click.echo(f"{name} was removed.")


@people.command("allow")
@database_option
@click.argument("holder")
@machine_option
@folder_option
@click.option("--see", is_flag=True, help="Allow to see, not to answer.")
@click.option("--remove", is_flag=True, help="Remove this permission again.")
def allow_person(database_url: str, holder: str, machine: str, folder: str, see: bool, remove: bool) -> None:
    """Allow HOLDER, a person or @team, to answer for these machines and folders."""
    if remove:
        deny_person(database_url, holder, machine, folder)
        return
    may = "see" if see else "answer"
    work(database_url, server.people.allow, holder, machine, folder, may, operator())
    click.echo(f"{holder} is allowed to {may}: machine {machine}, folder {folder}.")


def deny_person(database_url: str, holder: str, machine: str, folder: str) -> None:
    if not work(database_url, server.people.deny, holder, machine, folder, operator()):
        raise AtlasBridgeError(f"{holder} has no such permission", "list them with: atlasbridge fleet people list")
    click.echo(f"{holder} is no longer allowed: machine {machine}, folder {folder}.")


@people.command("team")
@database_option
@click.argument("team")
@click.argument("name")
@click.option("--remove", "--out", "remove", is_flag=True, help="Remove NAME from TEAM.")
def set_team(database_url: str, team: str, name: str, remove: bool) -> None:
    """Add NAME to TEAM: they are allowed what @TEAM is allowed."""
    called = team.lstrip("@")
    work(database_url, server.people.set_team, called, name, not remove, operator())
    click.echo(f"{name} {'left' if remove else 'belongs to'} @{called}.")


@people.command("identity")
@database_option
@click.argument("name")
@click.argument("identity")
@click.option("--remove", is_flag=True, help="Remove this identity.")
def set_identity(database_url: str, name: str, identity: str, remove: bool) -> None:
    """Add an identity with which NAME takes part in a chat, such as telegram:1001 or slack:T1/U2."""
    work(database_url, server.people.set_identity, name, identity, not remove, operator())
    click.echo(f"{name} is {'no longer ' if remove else ''}{identity}.")


@people.command("quiet")
@database_option
@click.argument("name")
@click.argument("spans", nargs=-1)
@click.option("--zone", default="", help='Their time zone, such as "Europe/Berlin"; empty: the server\'s.')
def set_quiet(database_url: str, name: str, spans: tuple[str, ...], zone: str) -> None:
    """Set the SPANS of the day in which NAME wants no sound, such as 22:00-07:00; none: never."""
    work(database_url, server.people.set_quiet, name, spans, zone, operator())
    click.echo(f"{name} wants quiet: {', '.join(spans) or 'never'}.")


@people.command("list")
@database_option
@json_option
def list_people(database_url: str, as_json: bool) -> None:
    """List people, their teams and what they are allowed to do."""
    found = work(database_url, server.people.listing)
    empty = "no people yet; add one with: atlasbridge fleet people add NAME"
    print_found(found, as_json, ("name", "teams", "chats", "allowed"), _person, empty)


def _person(one: dict[str, Any]) -> tuple[str, ...]:
    rights = "; ".join(_right(right) for right in one["rights"]) or "nothing"
    allowed = "everything" if one["role"] == "admin" else rights
    return one["name"], ", ".join(one["teams"]), ", ".join(one["identities"]), allowed


def _right(right: dict[str, str]) -> str:
    return f"{right['may']} {right['machine']}:{right['folder']}"


# audit log


@command.group()
def audit() -> None:
    """The server's own log, and those of its machines."""


@audit.command("show")
@database_option
@last_option(100)
def show_log(database_url: str, limit: int) -> None:
    """Print entries of the server's log, one JSON object per line."""
    for line in work(database_url, server.audit.entries, limit):
        click.echo(line)


@audit.command("verify")
@database_option
@click.option("--wait", type=DURATION, default="30s", show_default=True, help="How long to wait for the machines.")
@json_option
@click.pass_context
def verify_log(ctx: click.Context, database_url: str, wait: float, as_json: bool) -> None:
    """Verify the server's chain, and the chain of every connected machine, entry by entry."""
    found: dict[str, Any] = work(database_url, server.audit.verify_all, wait)
    if as_json:
        print_json(found)
    else:
        click.echo(f"the server: {found['server']}")
        rows = [(one["machine"], one["verdict"], one["entries"]) for one in found["machines"]]
        print_table(("machine", "audit log", "entries"), rows, "no machine has joined yet")
    if not found["ok"]:
        ctx.exit(1)


# Earlier spellings, understood for one more version.
for _old, _now in (("revoke", remove_machine), ("screens", screens)):
    command.add_command(click.Command(_old, callback=_now.callback, params=_now.params, hidden=True))
_params = [parameter for parameter in allow_person.params if parameter.name not in ("see", "remove")]
people.add_command(click.Command("deny", callback=deny_person, params=_params, hidden=True))
