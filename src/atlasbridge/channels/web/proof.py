"""Proofs that two sides know the same key, without ever saying it.  Pure; the page does the same in `proof.js`.

Each proof names what it is for, so that none can be used as another: "hub" proves the hub to a page, "page" proves one
request, "device" makes a browser's key of a link's.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

KEY_BYTES = 32
EMPTY_DIGEST = hashlib.sha256(b"").hexdigest()


def mac(key: bytes, purpose: str, *parts: str) -> bytes:
    return hmac.new(key, "\n".join((purpose, *parts)).encode("utf-8", "surrogatepass"), hashlib.sha256).digest()


def proof(key: bytes, purpose: str, *parts: str) -> str:
    return mac(key, purpose, *parts).hex()


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def body_digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def same(left: str, right: str) -> bool:
    """Compare without telling by the time taken how much was right."""
    return hmac.compare_digest(left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))


def new_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def seal(key: bytes, cookie: str, login_id: str) -> str:
    """A key that only the browser's cookie opens again: what is kept on disk lets nobody in."""
    pad = mac(cookie.encode("utf-8", "surrogatepass"), "seal", login_id)
    return bytes(left ^ right for left, right in zip(key, pad, strict=True)).hex()


def unseal(sealed: str, cookie: str, login_id: str) -> bytes:
    return bytes.fromhex(seal(bytes.fromhex(sealed), cookie, login_id))
