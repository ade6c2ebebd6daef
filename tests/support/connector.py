"""Connects to a socket on behalf of a test and hands the connection over: to the kernel the peer is this process.

Run as `python connector.py FD [orphan]`: each line on standard input is a path to connect to; the connection goes out
through FD, or a byte without one where nobody listens.  It ends with its standard input.  As an orphan it is no child
of the test's.
"""

from __future__ import annotations

import array
import os
import socket
import sys


def main() -> None:
    if sys.argv[2:] == ["orphan"] and os.fork():
        os._exit(0)
    hatch = socket.socket(fileno=int(sys.argv[1]))
    for line in sys.stdin:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            try:
                link.connect(line.rstrip("\n"))
            except OSError:
                hatch.sendall(b"-")
                continue
            hatch.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [link.fileno()]).tobytes())])


if __name__ == "__main__":
    main()
