"""`atlasbridge passkey`: keys with which people sign what they approve, where a rule says `proof = "passkey"`."""

from __future__ import annotations

import sys

import click

from atlasbridge.cli.printing import ago, home, json_option, print_json, print_table
from atlasbridge.cli.web import PageClient

KEY_SHOWN = 12  # characters of a key's id: enough to tell keys apart


@click.group("passkey")
def command() -> None:
    """Add, list or remove the passkeys that sign approvals."""


@command.command("add")
@click.option("--name", default="", help="How answers of that browser are signed.  [default: named by its browser]")
@click.option("--qr/--no-qr", "draws", default=None, help="Draw a code to scan.  [default: on a terminal]")
@json_option
def add(name: str, draws: bool | None, as_json: bool) -> None:
    """Enrol a passkey: open the link on the phone or computer that has it, within ten minutes.

    The link logs one browser in and enrols one passkey there.  Browsers keep passkeys for a name, never for an address:
    on this computer the page is called localhost; a phone needs another name (see docs/howto/phone.md).
    """
    made = PageClient(home()).ask("passkey-code", name=name)
    links = made["links"]
    if as_json:
        print_json({"links": links, "code": made["code"]})
        return
    for place, link in links.items():
        click.echo(f"{place + ':':7}{link}")
    click.echo(f"\nOr enter this code on the page, under Settings, Passkeys: {made['code']}")
    best = links.get("proxy") or links.get("lan")
    if draws or (draws is None and sys.stdout.isatty() and best):
        from atlasbridge.cli.web import draw_code

        draw_code(best or links["local"])
    if not best:
        click.echo("\nThis link works on this computer. A phone needs a name for the page: see docs/howto/phone.md")


@command.command("list")
@json_option
def list_keys(as_json: bool) -> None:
    """List the passkeys that are enrolled."""
    found = PageClient(home()).ask("passkeys")["passkeys"]
    if as_json:
        print_json(found)
        return
    rows = [(one["key_id"][:KEY_SHOWN], one["name"], one["rp_id"], one["by"], ago(one["created_at"])) for one in found]
    print_table(("id", "name", "for", "added by", "age"), rows, "no passkeys; add one with: atlasbridge passkey add")


@command.command("remove")
@click.argument("passkey")
def remove(passkey: str) -> None:
    """Remove a lost or unused passkey, by its id or its name.  Everybody is notified."""
    name = PageClient(home()).ask("passkey-remove", which=passkey)["name"]
    click.echo(f'Removed "{name}". It can no longer approve; what it signed stays valid.')
