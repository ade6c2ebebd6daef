"""`atlasbridge web`: prints a one-time link to the page, as text and QR code, and manages paired browsers."""

from __future__ import annotations

import os
import sys
import time
import webbrowser
from typing import Any

import click

from atlasbridge.cli.printing import Renaming, ago, echo, home, json_option, print_found, print_json, scope_option
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.request import HubClient, ensure_hub
from atlasbridge.core.errors import AtlasBridgeError

# Requests of this user's commands to the page, over the hub's own socket, which identifies the caller.

PATIENCE_S = 10.0


def ask_page(do: str, **fields: Any) -> dict[str, Any]:
    """Send one request, and start the hub if none runs. A refusal is raised with its message. A hub that has just
    started gets a moment."""
    ensure_hub(home())
    clock = SystemClock()
    deadline = clock.now() + PATIENCE_S
    with HubClient(home()) as hub:
        while True:
            answer = hub.request("page", do=do, fields=fields)
            if answer.get("ok"):
                return answer
            if answer.get("reason") != "unavailable" or clock.now() > deadline:
                raise AtlasBridgeError(str(answer.get("message", "refused")), str(answer.get("hint", "")))
            time.sleep(0.05)


SCOPES = click.Choice(["read", "answer", "admin"])


@click.group("web", cls=Renaming, renamed={"revoke": "remove"}, invoke_without_command=True)
@click.option(
    "--open/--no-open", "opens", default=None, help="Open a browser here.  [default: when there is a display]"
)
@click.option(
    "--qr/--no-qr",
    "draws",
    default=None,
    help="Draw a QR code.  [default: on a terminal, if a phone can open the link]",
)
@click.option(
    "--scope",
    type=SCOPES,
    default="answer",
    show_default=True,
    help="read looks, answer also answers, admin also types into, ends and starts sessions and lets others in.",
)
@click.option("--name", default="", help="The name that its answers show.  [default: the kind of browser]")
@click.option("--set-password", is_flag=True, help="Set the password for logins over the LAN instead.")
@click.option("--log-out", is_flag=True, help="Log out every browser instead.")
@json_option
@click.pass_context
def web_command(
    context: click.Context,
    opens: bool | None,
    draws: bool | None,
    scope: str,
    name: str,
    set_password: bool,
    log_out: bool,
    as_json: bool,
) -> None:
    """Open the web page.  Each link logs one browser in, once, within ten minutes."""
    if context.invoked_subcommand:
        return
    if set_password:
        _set_password()
    elif log_out:
        click.echo(f"Logged out: {ask_page('log-out')['ended']}")
    else:
        _show_link(opens, draws, scope, name, as_json)


def _show_link(opens: bool | None, draws: bool | None, scope: str, name: str, as_json: bool) -> None:
    made = ask_page("link", name=name, scope=scope)
    links = made["links"]
    if as_json:
        print_json({"url": made["url"], "links": links, "fingerprint": made["fingerprint"]})
        return
    if opens or (opens is None and _has_display() and "local" in links):
        # Other users can read command lines, so this link works only for a browser of this user, and only outside of
        # sessions.
        webbrowser.open(ask_page("link", name=name, scope=scope, here=True)["links"]["local"])
        click.echo("The page opens in your browser. For another one, use this link:\n")
    _print_links(links)
    if made["fingerprint"]:
        click.echo(f"\nThe certificate's SHA-256 fingerprint, to compare on the phone:\n{made['fingerprint']}")
    best = links.get("lan") or links.get("proxy")
    if draws or (draws is None and sys.stdout.isatty() and best):
        draw_code(best or links["local"])
    if set(links) == {"local"}:
        echo(
            "\nThis link works on this computer. For a phone in the same network: atlasbridge config set "
            "channels.web.lan true, then atlasbridge web again. Other ways: docs/howto/phone.md"
        )


@web_command.command("devices")
@json_option
def devices(as_json: bool) -> None:
    """List the browsers that are logged in."""
    found = ask_page("devices")["devices"]
    columns = ("id", "name", "scope", "since", "last seen")
    print_found(found, as_json, columns, _device, "no browser is logged in")


def _device(one: dict[str, Any]) -> tuple[str, ...]:
    return one["login_id"], one["name"], one["scope"], ago(one["created_at"]), ago(one["seen_at"])


@web_command.command("remove")
@click.argument("device")
def revoke(device: str) -> None:
    """Log one browser out, by its id or its name.  It gets no more push messages."""
    ask_page("revoke", which=device)
    click.echo("Removed: that browser must log in again.")


@web_command.command("rename")
@click.argument("device")
@click.argument("name")
def rename(device: str, name: str) -> None:
    """Rename a browser; its answers show that name."""
    click.echo(f"It is now called {ask_page('rename', which=device, name=name)['name']}.")


def _set_password() -> None:
    secret = click.prompt("Password (12 characters or more)", hide_input=True, confirmation_prompt=True)
    ask_page("password", password=secret)
    click.echo("Set. The page on the LAN now also takes this password.")


def _has_display() -> bool:
    if os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _print_links(links: dict[str, str]) -> None:
    for place, link in links.items():
        click.echo(f"{place + ':':7}{link}")


def draw_code(link: str) -> None:
    import segno

    click.echo()
    segno.make(link, error="l", micro=False).terminal(compact=True, border=2)


# `atlasbridge token`: manages tokens for the HTTP API, each with one scope; only their digests are stored.


@click.group("token", cls=Renaming, renamed={"create": "add", "revoke": "remove"})
def token_command() -> None:
    """Add, list and remove tokens for the HTTP API."""


@token_command.command("add")
@click.argument("name")
@scope_option(
    "read looks, ask also asks, answer also answers, admin also types, ends and starts sessions and makes tokens."
)
@json_option
def create(name: str, scope: str, as_json: bool) -> None:
    """Create a token.  Its secret is shown only now."""
    token = ask_page("token-create", name=name, scope=scope)
    if as_json:
        print_json({key: value for key, value in token.items() if key != "ok"})
        return
    click.echo(token["token"])
    click.echo("Keep it: it is not shown again. Send it as: Authorization: Bearer TOKEN", err=True)


@token_command.command("list")
@json_option
def list_tokens(as_json: bool) -> None:
    """List tokens, without their secrets."""
    tokens = ask_page("tokens")["tokens"]
    print_found(tokens, as_json, ("id", "name", "scope", "age"), _token, "no tokens")


def _token(one: dict[str, Any]) -> tuple[str, ...]:
    return one["token_id"], one["name"], one["scope"], ago(one["created_at"])


@token_command.command("remove")
@click.argument("token")
def revoke_token(token: str) -> None:
    """Remove a token, by its id or its name.  It stops working at once."""
    ask_page("token-revoke", which=token)
    click.echo("Removed.")


# `atlasbridge passkey`: manages the keys that sign approvals if a rule says `proof = "passkey"`.

KEY_SHOWN = 12  # characters of a key's id: enough to tell keys apart


@click.group("passkey")
def passkey_command() -> None:
    """Add, accept, list or remove the passkeys that sign approvals."""


@passkey_command.command("add")
@click.option("--name", default="", help="The name that its answers show.  [default: the kind of browser]")
@click.option(
    "--qr/--no-qr",
    "draws",
    default=None,
    help="Draw a QR code.  [default: on a terminal, if a phone can open the link]",
)
@json_option
def add(name: str, draws: bool | None, as_json: bool) -> None:
    """Enrol a passkey: open the link on the phone or computer that has it, within ten minutes.

    The link logs one browser in and enrols one passkey there.  Browsers keep passkeys for a name, never for an address:
    on this computer the page is called localhost; a phone needs another name (see docs/howto/phone.md).
    """
    made = ask_page("passkey-code", name=name)
    links = made["links"]
    if as_json:
        print_json({"links": links, "code": made["code"]})
        return
    _print_links(links)
    click.echo(f"\nOr enter this code on the page, under Settings, Passkeys: {made['code']}")
    best = links.get("proxy") or links.get("lan")
    if draws or (draws is None and sys.stdout.isatty() and best):
        draw_code(best or links["local"])
    if not best:
        click.echo("\nThis link works on this computer. A phone needs a name for the page: see docs/howto/phone.md")


@passkey_command.command("accept")
@click.argument("person")
@click.argument("page")
@click.argument("key")
@click.option("--name", default="", help="The name that the list shows.")
def accept(person: str, page: str, key: str, name: str) -> None:
    """Let a person of the fleet approve on the fleet's page with a passkey.

    The fleet's page shows the whole command under Settings, Passkeys; run it on each machine that is to accept the key.
    Only keys that were accepted here count on this machine: a fleet server cannot add one.
    """
    made = ask_page("passkey-accept", person=person, origin=page, key=key, name=name)
    click.echo(f'Accepted "{made["name"]}" of {person}, used at {page}. To take it back: atlasbridge passkey remove')


@passkey_command.command("list")
@json_option
def list_keys(as_json: bool) -> None:
    """List the passkeys that are enrolled."""
    found = ask_page("passkeys")["passkeys"]
    empty = "no passkeys; add one with: atlasbridge passkey add"
    print_found(found, as_json, ("id", "name", "for", "used by", "added by", "age"), _passkey, empty)


def _passkey(one: dict[str, Any]) -> tuple[str, ...]:
    whose = one.get("person", "") or "this machine's page"
    return one["key_id"][:KEY_SHOWN], one["name"], one["rp_id"], whose, one["by"], ago(one["created_at"])


@passkey_command.command("remove")
@click.argument("passkey")
def remove(passkey: str) -> None:
    """Remove a lost or unused passkey, by its id or its name.  Everyone is notified."""
    name = ask_page("passkey-remove", which=passkey)["name"]
    click.echo(f'Removed "{name}". It can no longer approve; what it signed stays valid.')
