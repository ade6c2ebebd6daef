"""The server's own Ed25519 key, and machines known by theirs; tokens, which are kept only as their hash."""

from __future__ import annotations

import hashlib
import secrets

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from atlasbridge.core.fleet_wire import from_text, to_text
from atlasbridge.core.values import frozen
from atlasbridge.fleet.server.database import Connection, row


@frozen
class Identity:
    private_key: str
    public_key: str

    def sign(self, text: bytes) -> str:
        return to_text(Ed25519PrivateKey.from_private_bytes(from_text(self.private_key)).sign(text))


async def identity_of(connection: Connection) -> Identity:
    found = await row(connection, "SELECT private_key, public_key FROM desk_identity")
    assert found is not None  # made with the tables
    return Identity(found["private_key"], found["public_key"])


def proves(public_key: str, signature: str, text: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(from_text(public_key)).verify(from_text(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def new_token() -> str:
    return secrets.token_urlsafe(24)


def hashed(token: str) -> str:
    """Tokens are long and random: no salt is needed, and a copy of the table opens nothing."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
