"""The web channel's own table of the configuration, as the channel reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

PUSH_SERVICES = (
    "fcm.googleapis.com",
    "updates.push.services.mozilla.com",
    "web.push.apple.com",
    ".notify.windows.com",  # a leading dot: any name below it
)


@dataclass(frozen=True, slots=True)
class WebSettings:
    port: int = 8484  # where the page listens on this machine; 0: a free one, chosen once and then kept
    hosts: tuple[str, ...] = ()  # names under which a TLS proxy on this machine (tailscale serve) serves the page
    lan: bool = False  # also listen on the local network, with TLS
    lan_host: str = "0.0.0.0"  # the address that the LAN listener binds
    lan_port: int = 8485  # the port of the LAN listener
    lan_names: tuple[str, ...] = ()  # host names and addresses that the phone can use; empty: this machine's own
    cert: str = ""  # certificate and key for the LAN listener; empty: a self-signed pair is made in the home folder
    key: str = ""  # the private key that belongs to `cert`
    link_ttl_s: float = 600.0  # how long a one-time link works
    login_ttl_s: float = 30 * 86_400.0  # how long a browser stays logged in
    password_scope: str = "answer"  # the scope of a login by password: read, answer or admin
    replies_per_minute: int = 60  # most replies a minute from one login
    push_hosts: tuple[str, ...] = PUSH_SERVICES  # the only hosts that get push messages
    push_contact: str = "mailto:atlasbridge@localhost"  # the sender's address for push services

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> WebSettings:
        """Keys that belong to the router (`enabled`, ...) are not ours and are left alone."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {name: value for name, value in table.items() if name in known}
        values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**values)
