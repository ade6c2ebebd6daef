"""A person's program at the page: logs in by a link and prints what a browser would keep, or answers a prompt.

Run as `python page_person.py LINK [PROMPT VALUE] [--socket PATH]`: a process of its own, as a browser is, of whichever
user it is started by.
"""

from __future__ import annotations

import json
import sys

import httpx
from tests.support.page_client import API, enter_now, signer


def main() -> None:
    link, *words = sys.argv[1:]
    transport = httpx.HTTPTransport(uds=words[words.index("--socket") + 1]) if "--socket" in words else None
    with httpx.Client(base_url=link.partition("/#")[0], transport=transport, timeout=120) as client:
        enter_now(client, link)
        signed = signer(client)
        (name, value), *_ = client.cookies.items()
        found = {"login_id": signed.login_id, "key": signed.key.hex(), "epoch": signed.epoch}
        told = {**found, "cookie": f"{name}={value}", "status": 200}
        if len(words) > 1 and words[0] != "--socket":
            body = {"value": words[1], "request_key": "0" * 16}
            told["status"] = client.post(f"{API}/prompts/{words[0]}/reply", json=body).status_code
        print(json.dumps(told))


if __name__ == "__main__":
    main()
