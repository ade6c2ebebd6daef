"""Connects to a socket on behalf of a test and hands the connection over: to the kernel the peer is this process.

Run as `python connector.py FD`: each line on standard input is a path to connect to; the connection goes out through
FD.  It ends with its standard input.
"""

from __future__ import annotations

import array
import socket
import sys


def main() -> None:
    hatch = socket.socket(fileno=int(sys.argv[1]))
    for line in sys.stdin:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.connect(line.rstrip("\n"))
        hatch.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [link.fileno()]).tobytes())])
        link.close()


if __name__ == "__main__":
    main()
