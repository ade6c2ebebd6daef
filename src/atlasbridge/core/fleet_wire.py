"""What a hub and a fleet server say to each other: one JSON object per WebSocket message.

server -> hub   challenge  nonce, server, keys                first of all; keys: each signed by the one before
hub -> server   join       token, name, key, nonce, ephemeral          trades a one-time token for a place
              enter      machine, epoch, nonce, signature, version, policy, screens    every time after that; and what
                         token, digest, told_until, newest, host    tells whether one of the stores went back in time
server -> hub   joined     machine, name, signature         answers `join`; the connection ends
              welcome    signature, acked, beat_s, chats  answers `enter`; acked: the last number the server has; chats:
                         epoch, token, notice, open       whether the server asks people in chats; another epoch than
                         the
                                                          hub's: it tells everything that is open anew
              recall     nonce                            answers an `enter` that looks like another store's
              refused    reason, sentence                 and the connection ends
hub -> server   recalled   nonce, token, digest …           it is there, and remembers this
              entered    token                            it has written down the token of this meeting
              up         seq, items, head                 items of the outbox, the last of them numbered `seq`
              told                                        everything that is open was told in this epoch
              outcome    id, ok, stage or reason, sentence           what became of a decision
              proof      request, lines, more             audit lines that were asked for
              screen     session_id, screen or null       only while somebody looks
              policy     digest, fault                    the rules were taken over, or why not
              notice     message                          what people are told without being asked
              leave                                       it does not come back
              beat       head                             every `beat_s`, and answered: a silent link is a dead link
server -> hub   ack        seq
              decision   id, prompt_id, value, as_text, by, place
              prove      request, after                   audit lines from there on
              asks       prompts                          somebody is asked for these in a chat of the server
              watch      session_id, on
              policy     digest, text
              limited    sentence                         not everything that the machine asks is shown
              again                                       there is room now: enter anew
              beat       chats

Nothing of this asks a clock: numbers are used once, and a hub's place in its outbox is a number, too.
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
DEAD_S: Final = 50.0  # so long without a word, and the link is taken for dead
OPEN_STATES: Final = frozenset({"created", "routed", "awaiting_reply"})


@frozen
class Invitation:
    """Where a server is, the token to enter, and the key by which it is recognised."""

    url: str
    token: str
    server_key: str


def encode_invitation(url: str, token: str, server_key: str) -> str:
    """The token stands behind `#`: it is not in any server's log."""
    return f"{url.rstrip('/')}/#{token}.{server_key}"


def parse_invitation(url: str, token: str = "") -> Invitation:
    parts = urlsplit(url if "//" in url else f"https://{url}")
    given = token.strip() or parts.fragment
    secret, dot, server_key = given.partition(".")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url!r} is no address of a server", "write it as https://desk.example.org")
    if crosses_in_the_clear(url if "//" in url else f"https://{url}"):
        raise ConfigError(
            f"{parts.netloc} would be spoken to in the clear",
            "write it as https://…; see: atlasbridge fleet serve --cert",
        )
    if not (dot and secret and server_key):
        raise ConfigError("there is no token, or it is not whole", "make one at the server: atlasbridge fleet invite")
    return Invitation(f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", secret, server_key)


def crosses_in_the_clear(url: str) -> bool:
    """Whether whoever sits between could read the token, and put decisions of their own into what the server says."""
    parts = urlsplit(url)
    return parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost")


def digest_open(prompt_ids: Iterable[str], session_ids: Iterable[str]) -> str:
    """Of what is open at a machine: the same at both ends, or one of them has lost something."""
    lines = sorted([*(f"prompt {one}" for one in prompt_ids), *(f"session {one}" for one in session_ids)])
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def signing_text(purpose: str, nonce: str, *about: str) -> bytes:
    """What is signed: never the same for two purposes, two challenges or two parties."""
    return json.dumps(["atlasbridge", PROTOCOL, purpose, nonce, *about]).encode()


def rotation_text(old_key: str, new_key: str) -> bytes:
    """What a server's old key signs to say which one follows it."""
    return signing_text("rotate", "", old_key, new_key)


def to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_text(text: str) -> bytes:
    """Anything that is not what `to_text` makes gives b"": a key is written in one way only."""
    try:
        found = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (ValueError, UnicodeEncodeError):
        return b""
    return found if to_text(found) == text else b""


def encode_message(kind: str, **fields: Any) -> str:
    return json.dumps({"m": kind, **fields}, ensure_ascii=False, separators=(",", ":"))


def decode_message(text: str) -> dict[str, Any]:
    """ValueError: it is none."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict) or not isinstance(found.get("m"), str):
        raise ValueError("a message is an object that says what it is")
    return found
