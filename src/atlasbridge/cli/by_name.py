"""Finds the session or prompt that a person names on the command line. Few imports: `attach` starts with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from atlasbridge.core.client.find_session import listening_sessions
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.errors import AtlasBridgeError, HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.session.model import Named, choose, did_you_mean, join_names

SHORTEST_ID = 4


class NotFound(AtlasBridgeError):
    """No session has this name, or several have."""


def sessions_of(hub: HubClient, include_ended: bool = False, name: str = "") -> list[Named]:
    """`name` limits the result to sessions with this name."""
    return [named_session(item) for item in hub.ask("sessions", all=include_ended, name=name)["sessions"]]


def named_session(item: dict[str, Any]) -> Named:
    return Named(item["session_id"], _name(item), item["state"] == "active")


def id_beginning(context: Any, argument: Any, said: str | None) -> str | None:
    """For an argument of click: the beginning of an id, if it is long enough to mean one."""
    import click

    if said is not None and len(said) < SHORTEST_ID:
        raise click.UsageError(f"give at least {SHORTEST_ID} characters of the id")
    return said


def find_session_id(said: str, candidates: Iterable[Named]) -> str:
    """Return the id of the session that was named. Raises NotFound with a hint."""
    choice = choose(said, candidates)
    if choice.one:
        return choice.one
    if choice.found:
        raise NotFound(f"{said!r} means several sessions", f"say which: {join_names(choice.found)}")
    raise NotFound(f"there is no session {said!r}", did_you_mean(choice.near) or "list them with: atlasbridge ps")


def find_prompt_id(said: str, prompts: list[dict[str, Any]]) -> tuple[str, str]:
    """Return the open prompt with this id, session id or session name; or why the name is ambiguous.

    An unknown name is returned unchanged: the hub knows whether such a prompt existed.
    """
    own = [Named(item["prompt_id"]) for item in prompts]
    asking = [Named(item["session_id"], _name(item)) for item in prompts]
    found = [item.id for item in choose(said, own).found]
    found += [_prompt_of(prompts, item.id) for item in choose(said, asking).found]
    found = list(dict.fromkeys(found))
    if len(found) == 1:
        return found[0], ""
    if not found:
        return said, ""
    names = ", ".join(_shown(item) for item in prompts if item["prompt_id"] in found)
    return "", f"{said!r} means several prompts: {names}"


def _prompt_of(prompts: list[dict[str, Any]], session_id: str) -> str:
    return next(str(item["prompt_id"]) for item in prompts if item["session_id"] == session_id)


def _shown(prompt: dict[str, Any]) -> str:
    return f"{prompt['prompt_id'][:8]} ({_name(prompt)})"


def _name(item: dict[str, Any]) -> str:
    """The name in lists: the label, or the tool if there is none."""
    return str(item["label"] or item["tool"])


def running_sessions(home: Home) -> list[Named]:
    """Sessions with an open attach socket, with their names from the hub if it runs."""
    listening = set(listening_sessions(home))
    try:
        with HubClient(home, timeout_s=5.0) as hub:
            known = [item for item in sessions_of(hub) if item.id[:8] in listening]
    except HubUnavailable:
        known = []
    return known + [Named(name) for name in sorted(listening - {item.id[:8] for item in known})]


def find_running(home: Home, said: str) -> str:
    """For `attach`: find a running session; "" means the only one."""
    candidates = running_sessions(home)
    if not said and len(candidates) == 1:
        return candidates[0].id
    if not said:
        text = "several sessions are running" if candidates else "no session is running"
        raise NotFound(
            text, f"say which: {join_names(candidates)}" if candidates else "start one with: atlasbridge run TOOL"
        )
    # an attach socket has only the short id
    whole = [item.id for item in candidates if said.lower().startswith(item.id)]
    return whole[0] if whole else find_session_id(said, candidates)


def warn_of_same_name(name: str, running: Iterable[Named]) -> str:
    """Return a warning if other running sessions have this name, or ""."""
    same = [item for item in running if item.live and item.name.lower() == name.lower()]
    if not name or not same:
        return ""
    return f"{join_names(same)} has this name, too: commands will ask which of them you mean"
