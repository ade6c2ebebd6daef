"""`atlasbridge run` with a host from the fork server: sends the command line, hands over the terminal, exits like the
tool.

The host parses the command line. Without a fork server, `run` does everything. It imports less than `run` to start
fast.
"""

from __future__ import annotations

import os

from atlasbridge.core.host.spawn_request import request_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from atlasbridge.core.fast_imports import socket


def main(words: Sequence[str]) -> int:
    connection = request_host(words, os.environ)
    if connection is not None:
        return _run_in_forked_host(connection)
    from atlasbridge.cli import run

    return run.main(words)


def _run_in_forked_host(connection: socket.socket) -> int:
    """The host also reports errors in the command line."""
    from atlasbridge.core.client.client import Client

    client = Client(connection, share=_share)
    ending = client.await_start()
    plan = client.plan
    if ending is None and not plan.get("detach"):
        ending = client.run()
    client.close()
    if ending is not None and not plan.get("announce") and not ending.text:
        return ending.status
    from atlasbridge.cli import run

    if ending is None:
        return run.tell_detached(client.session_id, bool(plan["hub"]))
    if plan.get("announce"):
        run.announce_page()
    return run.complain(ending.text, ending.hint, ending.status)


def _share(session_id: str, connection: int) -> str:
    from atlasbridge.cli.watch import share

    return share(session_id, connection)
