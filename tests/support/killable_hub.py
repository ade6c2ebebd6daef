"""`python -m tests.support.killable_hub`: forks hubs and sessions of the product on demand, mortal at a chosen place.

Everything is imported once, so that a hub starts in the time of a fork and hundreds can be killed within a minute.  One
JSON order per line comes in, the new process's id goes out.  What runs in the child is the product's own `main`.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from typing import Any

from tests.support.deadly import die_at
from tests.support.deadly_calls import arm

import atlasbridge.bootstrap
import atlasbridge.channels.local
import atlasbridge.cli.run
import atlasbridge.config.model
import atlasbridge.core.client.client
import atlasbridge.core.daemon.__main__
import atlasbridge.core.daemon.service
import atlasbridge.core.detection.detector
import atlasbridge.core.host.hub_link
import atlasbridge.core.host.launch
import atlasbridge.core.host.typist
import atlasbridge.core.prompt.answer
import atlasbridge.os.tty.linux
import atlasbridge.os.tty.posix
from atlasbridge.core.home import Home


def main() -> None:
    os.environ.pop("LD_PRELOAD", None)  # for the hubs that are forked here, not for the tools of the sessions
    atlasbridge.bootstrap.load_configuration(Home.find(os.environ), os.environ)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them: the kernel buries them
    for line in sys.stdin.buffer:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become(order)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


def _become(order: dict[str, Any]) -> None:
    os.environ.update(order.get("environ", {}))
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 2)
    out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if order.get("out") else nowhere
    os.dup2(out, 1)
    tell = os.open(order["tell"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if order.get("tell") else -1
    sys.argv = ["atlasbridge", *order.get("arguments", [])]
    status = 1
    try:
        if order["kind"] == "hub":
            sys.argv += ["--ready-fd", str(os.open(order["ready"], os.O_WRONLY))]
            if order.get("place"):
                arm(order["place"], order["witness"])
            if order.get("die_at") or tell >= 0:
                die_at(order.get("die_at", ""), tell)
            status = atlasbridge.core.daemon.__main__.main()
        else:
            if order.get("die_at") or tell >= 0:
                die_at(order.get("die_at", ""), tell, _is_host)
            if order.get("place"):
                arm(order["place"], order["witness"], host=True)
            status = atlasbridge.cli.run.run(sys.argv[1:])
        sys.stdout.flush()
    finally:
        os._exit(status)


def _is_host() -> bool:
    """The session host has left its starter: it leads no session and no group, and lives in a session of its own."""
    return os.getsid(0) != os.getpid()


if __name__ == "__main__":
    main()
