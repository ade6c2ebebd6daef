"""Ed25519 keys of machines and servers as text, and tokens, of which a server stores only a hash (needs the `fleet`
extra)."""

from __future__ import annotations

import hashlib
import secrets

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from atlasbridge.core.fleet_wire import from_text, to_text


def new_key() -> str:
    return to_text(Ed25519PrivateKey.generate().private_bytes_raw())


def public_of(key: str) -> str:
    return to_text(_private(key).public_key().public_bytes_raw())


def sign(key: str, text: bytes) -> str:
    return to_text(_private(key).sign(text))


def is_signed(public_key: str, signature: str, text: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(from_text(public_key)).verify(from_text(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def _private(key: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(from_text(key))


def new_token() -> str:
    return secrets.token_urlsafe(24)


def hashed(token: str) -> str:
    """The hash of a token. Tokens are long and random, so they need no salt, and a copy of the table is useless."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
