"""`atlasbridge setup`: connects a phone or a chat, step by step or with flags only.

Tokens come from a prompt, the environment or a file, never from an argument: all users of this machine can see
arguments.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from pathlib import Path
from typing import Any

import click

from atlasbridge.bootstrap import how_to_start, introduce, local_language, say, try_notification
from atlasbridge.cli.config import apply_change, read_table, write_table
from atlasbridge.cli.printing import DURATION, home
from atlasbridge.core.errors import ChannelError, ConfigError
from atlasbridge.core.values import frozen

CHANNELS = {
    "web": "a page on this machine, no account (always on)",
    "telegram": "your phone, with your own bot",
    "slack": "direct messages in your workspace",
    "discord": "direct messages of your own bot",
    "ntfy": "push notifications on your phone, no account",
    "matrix": "a room on your homeserver",
    "tell": "notifications with a link, by any service that Apprise supports",
}
TOKENS = {
    "telegram": ("bot_token",),
    "slack": ("bot_token", "app_token"),
    "discord": ("bot_token",),
    "matrix": ("access_token",),
}
TRIES = 3
WRITTEN = "Written to {path} (mode 0600)."
CONNECTED = "{channel} is connected"
ARRIVED = "It works: your tap arrived."
NO_TAP, WRITTEN_ANYWAY = "the tap did not arrive in time", "the settings are written; try it with: atlasbridge demo"
NO_WORD, GIVE_ID = "the word did not arrive in time", "try again, or give your id: --user ID"
ASK = {
    "bot_token": "Bot token",
    "app_token": "App-level token (xapp-...)",
    "access_token": "Access token",
    "address": "Apprise address",
}


@frozen
class Token:
    """`value` is used now; `written` goes into the file: the value itself, or where it is stored."""

    value: str
    written: str


@frozen
class SetupOptions:
    """The values of the flags."""

    interactive: bool
    people: tuple[str, ...]
    test: bool
    patience_s: float
    api_url: str
    room: str
    page_url: str
    places: dict[str, tuple[str | None, str | None]]  # token -> environment variable, file


@click.command("setup")
@click.option("--channel", type=click.Choice(list(CHANNELS)), help="What to connect; without it, setup asks.")
@click.option("--non-interactive", is_flag=True, help="Ask nothing; take everything from options.")
@click.option("--token-env", metavar="NAME", help="The environment variable with the bot token.")
@click.option("--token-file", metavar="PATH", help="The file (mode 0600) with the bot token.")
@click.option("--app-token-env", metavar="NAME", help="The same for Slack's app-level token.")
@click.option("--app-token-file", metavar="PATH", help="The same for Slack's app-level token.")
@click.option(
    "--user",
    "people",
    metavar="ID",
    multiple=True,
    help="A person who is allowed to answer; without it, setup finds you by a code word.",
)
@click.option("--test/--no-test", default=True, help="Whether to send a test prompt and wait for the tap.")
@click.option(
    "--timeout", "patience_s", type=DURATION, default="5m", show_default=True, help="How long to wait for you."
)
@click.option("--api-url", default="", help="Another server, such as your own Bot API server; the Matrix homeserver.")
@click.option("--room", default="", help="Matrix: an existing room's id (!...); without it, setup creates one.")
@click.option("--page-url", default="", help="tell: where to answer, such as the page's address.")
def command(
    channel: str | None,
    non_interactive: bool,
    token_env: str | None,
    token_file: str | None,
    app_token_env: str | None,
    app_token_file: str | None,
    people: tuple[str, ...],
    test: bool,
    patience_s: float,
    api_url: str,
    room: str,
    page_url: str,
) -> None:
    """Connect a phone or a chat: web only, Telegram, Slack, Discord, ntfy, Matrix, or a service that only notifies."""
    own = (token_env, token_file)
    places = {"bot_token": own, "access_token": own, "address": own, "app_token": (app_token_env, app_token_file)}
    options = SetupOptions(not non_interactive, people, test, patience_s, api_url, room, page_url, places)
    with local_language():
        chosen = channel or _choose(options)
        if chosen == "web":
            write_table(home(), "web", {**read_table(home(), "web"), "enabled": True})
            apply_change(say("The web page is on"), say)
            click.echo(say("Open it with: atlasbridge web"))
            return
        others = {"ntfy": _connect_ntfy, "tell": _connect_tell}
        asyncio.run(others[chosen](options) if chosen in others else _connect(chosen, options))


def _choose(options: SetupOptions) -> str:
    if not options.interactive:
        raise click.UsageError("say which channel: --channel web, telegram, slack, discord, ntfy, matrix or tell")
    click.echo(say("Where should AtlasBridge ask you?"))
    for name, about in CHANNELS.items():
        click.echo(f"  {name:8}  {say(about)}")
    return str(click.prompt(say("Channel"), type=click.Choice(list(CHANNELS)), default="web"))


def find_token(channel: str, name: str, options: SetupOptions) -> Token:
    """Read a token from the environment, from a file, or from a hidden prompt."""
    variable, file = options.places[name]
    if variable:
        if not os.environ.get(variable):
            raise ConfigError(f"the environment variable {variable} is not set", f"export {variable}=...")
        return Token(os.environ[variable].strip(), f"env:{variable}")
    if file:
        return _read_token(Path(file).expanduser().absolute())
    if not options.interactive:
        flag = "app-token" if name == "app_token" else "token"
        raise click.UsageError(f"without questions the token must come from --{flag}-env or --{flag}-file")
    if name != "app_token":
        click.echo(how_to_start(channel))
    value = str(click.prompt(say(ASK[name]), hide_input=True)).strip()
    return Token(value, value)


def _read_token(path: Path) -> Token:
    try:
        if path.stat().st_mode & 0o077:
            raise ConfigError(f"other users can read {path}", f"chmod 600 {path}")
        return Token(path.read_text(encoding="utf-8").strip(), f"file:{path}")
    except OSError as fault:
        raise ConfigError(f"cannot read {path}: {fault.strerror}", "write the token into that file") from None


async def _introduce(channel: str, options: SetupOptions) -> tuple[dict[str, Token], Any, str]:
    """Return tokens that the server accepts, its client, and the bot's name. A mistyped token can be entered again."""
    typed = options.interactive and not any(any(place) for place in options.places.values())
    tries = TRIES if typed else 1
    while True:
        tries -= 1
        tokens = {name: find_token(channel, name, options) for name in TOKENS[channel]}
        talk = introduce(
            channel, {name: token.value for name, token in tokens.items()}, options.api_url, **_of(channel, options)
        )
        try:
            return tokens, talk, await talk.check()
        except ChannelError as fault:
            await talk.close()
            if not tries:
                raise
            click.echo(say("{fault}: {hint}. Please try again.", fault=fault, hint=fault.hint), err=True)


def _of(channel: str, options: SetupOptions) -> dict[str, Any]:
    return {"room": options.room, "people": options.people} if channel == "matrix" else {}


async def _connect(channel: str, options: SetupOptions) -> None:
    tokens, talk, name = await _introduce(channel, options)
    try:
        click.echo(say("The token works: {name}", name=name))
        people = list(options.people) or [await _find_person(talk, name, options)]
        found = {**talk.settings(_checked(channel, people)), **{key: token.written for key, token in tokens.items()}}
        write_table(home(), channel, _merged(channel, found))
        click.echo(say(WRITTEN, path=home().config))
        if options.test:
            await _prove(talk, people, options)
    finally:
        await talk.close()
    apply_change(say(CONNECTED, channel=channel), say)
    click.echo(say("Next: atlasbridge run claude, and walk away."))


async def _find_person(talk: Any, name: str, options: SetupOptions) -> str:
    if not options.interactive:
        raise click.UsageError("with --non-interactive, name a person who is allowed to answer: --user ID")
    word = f"atlas-{secrets.token_hex(2)}"
    click.echo(say("To show who you are, send this word to {name}:\n\n    {word}\n", name=name, word=word))
    person = await talk.find_person(word, options.patience_s)
    if person is None:
        raise ChannelError(say(NO_WORD), say(GIVE_ID))
    click.echo(say("Hello {name} (id {person}).", name=person.name, person=person.person_id))
    return str(person.person_id)


def _checked(channel: str, people: list[str]) -> list[str]:
    if channel in ("telegram", "discord") and not all(person.isdecimal() for person in people):
        raise ConfigError(f"{channel.title()}'s people are given by number", "leave --user out to find yours")
    return people


def _merged(channel: str, found: dict[str, Any]) -> dict[str, Any]:
    """Keep the channel's existing settings and the people who were allowed before."""
    old = read_table(home(), channel)
    people = [*old.get("allowed_users", []), *found["allowed_users"]]
    return {**old, **found, "allowed_users": list(dict.fromkeys(people)), "enabled": True}


async def _prove(talk: Any, people: list[str], options: SetupOptions) -> None:
    for person in people:
        click.echo(say("A test prompt is on its way to {person}: tap its button.", person=person))
        await _await_tap(talk, person, options.patience_s)
    click.echo(say(ARRIVED))


async def _await_tap(talk: Any, person: str, patience_s: float) -> None:
    if not await talk.prove(person, patience_s):
        hint = say(WRITTEN_ANYWAY)
        raise ChannelError(say(NO_TAP), hint)


# `atlasbridge setup --channel ntfy`: creates two topics, waits for a phone to subscribe, and tests a tap.


async def _connect_ntfy(options: SetupOptions) -> None:
    """ntfy needs no account and no token, except on private servers that require one."""
    token = find_token("ntfy", "bot_token", options) if any(options.places["bot_token"]) else Token("", "")
    talk = introduce("ntfy", {"bot_token": token.value}, options.api_url)
    try:
        address = await talk.check()
        found = talk.settings(list(options.people) or ["phone"])
        found |= {"access_token": token.written} if token.written else {}
        write_table(home(), "ntfy", {**read_table(home(), "ntfy"), **found, "enabled": True})
        click.echo(say(WRITTEN, path=home().config))
        asked = "In the ntfy app, subscribe to this topic, and keep it secret:\n\n    {address}\n"
        click.echo(say(asked, address=address))
        if options.test:
            click.echo(say("A test prompt is on its way: tap its button."))
            await _await_tap(talk, "phone", options.patience_s)
            click.echo(say(ARRIVED))
    finally:
        await talk.close()
    apply_change(say(CONNECTED, channel="ntfy"), say)


# `atlasbridge setup --channel tell`: tests an Apprise address, and stores where people can answer.


async def _connect_tell(options: SetupOptions) -> None:
    """The address contains credentials, so it is read like a token."""
    address = find_token("tell", "address", options)
    if options.test:
        await try_notification(address.value)
        click.echo(say("The service accepted a test message."))
    old = read_table(home(), "tell")
    urls = list(dict.fromkeys([*old.get("urls", []), address.written]))
    page = {"page_url": options.page_url} if options.page_url else {}
    write_table(home(), "tell", {**old, **page, "urls": urls, "enabled": True})
    click.echo(say(WRITTEN, path=home().config))
    apply_change(say(CONNECTED, channel="tell"), say)
