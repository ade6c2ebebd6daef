"""A tool that pretends to be another session: it says hello at the hub's socket as a host would, and is no integration.

Run as `python false_host.py HOME`.  Once as itself, once over a connection whose maker has left.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

from tests.support.sample_prompt import YES_NO

from atlasbridge.core import wire
from atlasbridge.core.home import Home
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace


def pretend(home: Home, excerpt: str, maker_leaves: bool) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if not maker_leaves:
        link.connect(str(home.socket))
    elif pid := os.fork():
        os.waitpid(pid, 0)
    else:
        link.connect(str(home.socket))
        os._exit(0)
    prompt_id = new_id()
    session = SessionRecord(new_id(), "claude", ("claude",), "/srv/shop", 1, 1, "", label="release", rows=24, cols=80)
    opened = {"prompt_id": prompt_id, "prompt": encode_prompt(replace(YES_NO, excerpt=excerpt))}
    hello = {"m": "hello", "session": session.to_wire() | {"open_prompt": prompt_id}, "open": opened, "typed": []}
    link.sendall(wire.encode(hello))
    return link


if __name__ == "__main__":
    hub = Home(Path(sys.argv[1]))
    links = [pretend(hub, "Here?", maker_leaves=False), pretend(hub, "Left?", maker_leaves=True)]
    signal.pause()
