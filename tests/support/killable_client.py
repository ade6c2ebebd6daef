"""`python -m tests.support.killable_client PLACE TOLD run ...`: the product's command; its own process dies at PLACE.

PLACE "" only writes every place down in the file TOLD.  Host, tool and terminal restorer live on; see `deadly`.
"""

from __future__ import annotations

import os
import sys

from tests.support.deadly import die_at

from atlasbridge.__main__ import main


def start() -> None:
    place, told, *words = sys.argv[1:]
    client = os.getpid()
    sys.argv = ["atlasbridge", *words]
    tell = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if told else -1
    die_at(place, tell, lambda: os.getpid() == client)
    main()


if __name__ == "__main__":
    start()
