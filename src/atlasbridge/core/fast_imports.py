"""The standard library's own C halves of `socket` and `signal`, without the enums around them.

A client waits for nothing else when a tool is to start; each of the public modules would cost it several milliseconds.
"""

from __future__ import annotations

TYPE_CHECKING = False


if TYPE_CHECKING:
    import signal
    import socket
else:
    try:
        import _signal as signal
        import _socket as socket
    except ImportError:  # another interpreter
        import signal
        import socket

__all__ = ["signal", "socket"]
