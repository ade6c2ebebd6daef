"""A passkey in software: what a phone's chip does, by the letter of WebAuthn, and every way to do it wrong.

It speaks to a page or to the hub's own functions in hexadecimal, as `static/passkey.js` does.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


class SoftAuthenticator:
    """One key for one name.  Each argument of `sign` can be a lie."""

    def __init__(self, rp_id: str = "localhost", origin: str = "http://localhost:8484") -> None:
        self.rp_id = rp_id
        self.origin = origin
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.raw_id = os.urandom(32)
        self.count = 0

    @property
    def key_id(self) -> str:
        return self.raw_id.hex()

    def _client_data(self, kind: str, challenge: bytes, origin: str, **more: Any) -> bytes:
        code = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        return json.dumps({"type": kind, "challenge": code, "origin": origin, "crossOrigin": False, **more}).encode()

    def _data(self, flags: int, rp_id: str, more: bytes = b"") -> bytes:
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + struct.pack(">I", self.count) + more

    def create(self, challenge: str, *, origin: str = "", flags: int = PRESENT | VERIFIED) -> dict[str, str]:
        numbers = self.key.public_key().public_numbers()
        cose = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")})
        attested = b"\0" * 16 + struct.pack(">H", len(self.raw_id)) + self.raw_id + cose
        data = self._data(flags | ATTESTED, self.rp_id, attested)
        made = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client_data("webauthn.create", bytes.fromhex(challenge), origin or self.origin)
        return {"challenge": challenge, "key_id": self.key_id, "client_data": client.hex(), "attestation": made.hex()}

    def sign(
        self,
        challenge: str,
        *,
        origin: str = "",
        rp_id: str = "",
        flags: int = PRESENT | VERIFIED,
        kind: str = "webauthn.get",
        key: ec.EllipticCurvePrivateKey | None = None,
        **more: Any,
    ) -> dict[str, str]:
        self.count += 1
        data = self._data(flags, rp_id or self.rp_id)
        client = self._client_data(kind, bytes.fromhex(challenge), origin or self.origin, **more)
        signature = (key or self.key).sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return {
            "key_id": self.key_id,
            "client_data": client.hex(),
            "authenticator_data": data.hex(),
            "signature": signature.hex(),
        }
