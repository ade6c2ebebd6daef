"""The messages between a hub and a fleet server: one JSON object per WebSocket message.

server -> hub   challenge  nonce, server, keys                the first message; each key is signed by the one before
hub -> server   join       token, name, key, nonce, ephemeral exchanges a one-time token for a membership
                enter      machine, epoch, nonce, signature,  starts every later connection; the last five fields
                           version, policy, screens, token,   show whether one of the stores was restored from a
                           digest, told_until, newest, host   backup
server -> hub   joined     machine, name, signature           answers `join`; the connection ends
                welcome    signature, acked, beat_s, chats,   answers `enter`; acked: the last number that the server
                           epoch, token, notice, open         has; chats: whether the server notifies people in chats;
                                                              if the epoch differs, the hub sends everything open again
                recall     nonce                              answers an `enter` that seems to come from another store
                refused    reason, sentence                   the connection ends
hub -> server   recalled   nonce, token, digest …             the hub is online, with this state
                entered    token                              the hub has stored the token of this connection
                up         seq, items, head                   items of the outbox; `seq` is the number of the last
                told                                          everything that is open was sent in this epoch
                outcome    id, ok, stage or reason, sentence  the outcome of a decision
                proof      request, lines, more               the requested audit lines
                screen     session_id, screen or null         only while somebody watches
                policy     digest, fault                      the rules were applied, or the reason why not
                notice     message                            a notification for people
                leave                                         the hub leaves for good
                beat       head                               every `beat_s`, and answered; a silent link counts as dead
server -> hub   ack        seq
                decision   id, prompt_id, value, as_text,     passkey: a signature, if a rule requires one
                           by, place, passkey,               only_known: its person is no longer allowed to answer,
                           only_known                        so the hub only reports what became of it
                prove      request, after                     requests the audit lines from there on
                asks       prompts                            the server notifies somebody in a chat about these
                watch      session_id, on
                policy     digest, text
                limited    sentence                           the server shows only some of this machine's prompts
                again                                         there is room now: send `enter` again
                beat       chats

The protocol does not depend on clocks: nonces are used once, and the position in the outbox is a number.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.values import frozen

PROTOCOL: Final = 1
PATH: Final = "/link"
LONGEST_MESSAGE: Final = 4 * 1024 * 1024
BATCH: Final = 64
BEAT_S: Final = 20.0
DEAD_S: Final = 50.0  # the link counts as dead after this time without a message
OPEN_STATES: Final = frozenset({"created", "routed", "awaiting_reply"})


@frozen
class Invitation:
    """A server's address, the token to join, and the public key of the server."""

    url: str
    token: str
    server_key: str


def encode_invitation(url: str, token: str, server_key: str) -> str:
    """The token is in the URL fragment, so it does not appear in any server's log."""
    return f"{url.rstrip('/')}/#{token}.{server_key}"


def parse_invitation(url: str, token: str = "") -> Invitation:
    parts = urlsplit(url if "//" in url else f"https://{url}")
    given = token.strip() or parts.fragment
    secret, dot, server_key = given.partition(".")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url!r} is not the address of a fleet server", "write it as https://fleet.example.org")
    if crosses_in_the_clear(url if "//" in url else f"https://{url}"):
        raise ConfigError(
            f"{parts.netloc} would be spoken to in the clear",
            "write it as https://…; see: atlasbridge fleet serve --cert",
        )
    if not (dot and secret and server_key):
        raise ConfigError("there is no token, or it is not whole", "make one at the server: atlasbridge fleet invite")
    return Invitation(f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", secret, server_key)


def crosses_in_the_clear(url: str) -> bool:
    """Whether somebody on the network could read the token and insert decisions into the server's messages."""
    parts = urlsplit(url)
    return parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost")


def digest_open(prompt_ids: Iterable[str], session_ids: Iterable[str]) -> str:
    """A digest of everything that is open on a machine. If the two ends differ, one of them has lost something."""
    lines = sorted([*(f"prompt {one}" for one in prompt_ids), *(f"session {one}" for one in session_ids)])
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def signing_text(purpose: str, nonce: str, *about: str) -> bytes:
    """The text to sign. It differs for every purpose, nonce and party."""
    return json.dumps(["atlasbridge", PROTOCOL, purpose, nonce, *about]).encode()


def rotation_text(old_key: str, new_key: str) -> bytes:
    """The text that a server's old key signs to confirm its successor."""
    return signing_text("rotate", "", old_key, new_key)


def to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_text(text: str) -> bytes:
    """Returns b"" for anything that `to_text` does not produce, so that a key has only one spelling."""
    try:
        found = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (ValueError, UnicodeEncodeError):
        return b""
    return found if to_text(found) == text else b""


def encode_message(kind: str, **fields: Any) -> str:
    return json.dumps({"m": kind, **fields}, ensure_ascii=False, separators=(",", ":"))


def decode_message(text: str) -> dict[str, Any]:
    """Raises ValueError if the text is not a valid message."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict) or not isinstance(found.get("m"), str):
        raise ValueError("a message is an object that says what it is")
    return found
