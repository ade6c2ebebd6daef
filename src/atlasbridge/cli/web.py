"""`atlasbridge web`: a one-time link to the page, in the browser, as text and as a code to scan."""

from __future__ import annotations

import html
import os
import sys
import webbrowser
from pathlib import Path

import click

from atlasbridge.cli.page import PageClient
from atlasbridge.cli.printing import home, json_option, print_json

SCOPES = click.Choice(["read", "answer", "admin"])


@click.command("web")
@click.option(
    "--open/--no-open", "opens", default=None, help="Open a browser here.  [default: when there is a display]"
)
@click.option("--qr/--no-qr", "draws", default=None, help="Draw a code to scan.  [default: on a terminal]")
@click.option("--scope", type=SCOPES, default="admin", show_default=True, help="What the page may do.")
@click.option("--name", default="page", show_default=True, help="How answers of that page are signed.")
@click.option("--set-password", is_flag=True, help="Set the password for the login on the LAN instead.")
@click.option("--log-out", is_flag=True, help="End the login of every browser instead.")
@json_option
def command(
    opens: bool | None, draws: bool | None, scope: str, name: str, set_password: bool, log_out: bool, as_json: bool
) -> None:
    """Open the web page.  Each link lets one browser in, once, within ten minutes."""
    page = PageClient(home())
    if set_password:
        _set_password(page)
        return
    if log_out:
        click.echo(f"Logged out: {page.ask('DELETE', '/logins')['ended']}")
        return
    wanted = {"name": name, "scope": scope}
    links = page.ask("POST", "/links", wanted)["links"]
    if as_json:
        print_json({"url": page.url, "links": links})
        return
    if opens or (opens is None and _has_display()):
        _open(page.ask("POST", "/links", wanted)["links"]["local"])
        click.echo("The page opens in your browser. For another one, use this link:\n")
    for place, link in links.items():
        click.echo(f"{place + ':':7}{link}")
    if draws or (draws is None and sys.stdout.isatty()):
        _draw(links.get("lan") or links.get("proxy") or links["local"])
    if set(links) == {"local"}:
        click.echo("\nThis link works on this machine, or through a tunnel. From a phone: see docs/howto/phone.md")


def _set_password(page: PageClient) -> None:
    secret = click.prompt("Password (12 characters or more)", hide_input=True, confirmation_prompt=True)
    page.ask("PUT", "/password", {"password": secret})
    click.echo("Set. The page on the LAN now also takes this password.")


def _has_display() -> bool:
    if os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(link: str) -> None:
    """Through a private file: a link on a command line could be read by other users of this machine."""
    path: Path = home().root / "open.html"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(link)}">')
    webbrowser.open(path.as_uri())


def _draw(link: str) -> None:
    import segno

    click.echo()
    segno.make(link, error="l", micro=False).terminal(compact=True, border=2)
