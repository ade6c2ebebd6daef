"""`atlasbridge run`, where a zygote has a host for it: hand the words over, lend the terminal, exit as the tool did.

Knows nothing of the command line: the host reads it.  Without a zygote everything is `run`'s.  Lighter than that,
because a tool waits for it.
"""

from __future__ import annotations

import os

from atlasbridge.core.client.host_request import ask_zygote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from atlasbridge.core.lean import socket


def main(words: Sequence[str]) -> int:
    connection = ask_zygote(words, os.environ)
    if connection is not None:
        return _run_in_zygotes_host(connection)
    from atlasbridge.cli import run

    return run.main(words)


def _run_in_zygotes_host(connection: socket.socket) -> int:
    """The host reads the command line and says what is wrong with it; we lend it the terminal, as ever."""
    from atlasbridge.core.client.client import Client

    client = Client(connection)
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
