"""The C halves of `socket` and `signal` in the standard library, without the enums around them.

Importing the public modules would delay the start of a tool by several milliseconds each.
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
