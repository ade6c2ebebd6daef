"""The sender of Web Push: reads one order from standard input, sends it, and says on standard output what became of it.

Runs as a process of its own (see `push.py`); needs the `push` extra.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02
from pywebpush import WebPushException, webpush

TTL_S = 3600
TIMEOUT_S = 10


def load_key(path: Path) -> Vapid02:
    """The server's key pair, made once, for this user alone."""
    if not path.exists():
        fresh = Vapid02()
        fresh.generate_keys()
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "wb") as file:
            file.write(fresh.private_pem())
    return Vapid02.from_file(str(path))


def public_key(vapid: Vapid02) -> str:
    key: ec.EllipticCurvePublicKey = vapid.public_key
    raw = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def send(order: dict[str, Any], vapid: Vapid02) -> dict[str, Any]:
    sent, failed, gone = 0, 0, []
    for subscription in order["to"]:
        try:
            webpush(
                subscription,
                json.dumps(order["message"]),
                vapid_private_key=vapid,
                vapid_claims={"sub": order["contact"]},
                ttl=TTL_S,
                timeout=TIMEOUT_S,
            )
            sent += 1
        except WebPushException as error:
            failed += 1
            if error.response is not None and error.response.status_code in (404, 410):
                gone.append(subscription["endpoint"])
        except OSError:  # requests' errors are OSErrors: no network, no name, too slow
            failed += 1
    return {"sent": sent, "failed": failed, "gone": gone}


def main() -> None:
    order = json.load(sys.stdin)
    vapid = load_key(Path(order["key_file"]))
    answer = {"public_key": public_key(vapid)} if order["do"] == "key" else send(order, vapid)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
