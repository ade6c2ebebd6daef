"""The server's Ed25519 key, the signatures of machines, and tokens, of which only a hash is stored."""

from __future__ import annotations

import hashlib
import secrets

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from atlasbridge.core.fleet_wire import from_text, rotation_text, to_text
from atlasbridge.core.values import frozen
from atlasbridge.fleet.server.audit import note
from atlasbridge.fleet.server.database import Connection, Database, row, rows


@frozen
class Identity:
    private_key: str
    public_key: str
    chat_secret: str = ""  # for the nonces of buttons in chats
    keys: tuple[tuple[str, str, str], ...] = ()  # (old key, new key, signature by the old key) of each rotation

    def sign(self, text: bytes) -> str:
        return to_text(Ed25519PrivateKey.from_private_bytes(from_text(self.private_key)).sign(text))


async def identity_of(connection: Connection) -> Identity:
    found = await row(connection, "SELECT private_key, public_key, chat_secret FROM desk_identity")
    assert found is not None  # created with the tables
    known = await rows(connection, "SELECT old_key, new_key, endorsed FROM server_keys ORDER BY made_at")
    keys = tuple((one["old_key"], one["new_key"], one["endorsed"]) for one in known)
    return Identity(found["private_key"], found["public_key"], found["chat_secret"], keys)


async def rotate_key(database: Database, by: str) -> str:
    """Replace the server's key and return the new public one. The old private key is deleted."""
    async with database.transaction() as connection:
        await connection.execute("SELECT 1 FROM desk_identity FOR UPDATE")
        old, now = await identity_of(connection), database.now()
        key = Ed25519PrivateKey.generate()
        private, public = to_text(key.private_bytes_raw()), to_text(key.public_key().public_bytes_raw())
        query = "INSERT INTO server_keys (old_key, new_key, endorsed, made_at) VALUES (%s, %s, %s, %s)"
        await connection.execute(query, (old.public_key, public, old.sign(rotation_text(old.public_key, public)), now))
        await connection.execute("UPDATE desk_identity SET private_key = %s, public_key = %s", (private, public))
        await note(connection, now, "KEY_ROTATED", old=old.public_key, new=public, by=by)
    return public


def proves(public_key: str, signature: str, text: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(from_text(public_key)).verify(from_text(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def new_token() -> str:
    return secrets.token_urlsafe(24)


def hashed(token: str) -> str:
    """The hash of a token. Tokens are long and random, so they need no salt, and a copy of the table is useless."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
