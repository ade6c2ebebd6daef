"""Imports that do not delay the start of a tool: the C halves of `socket` and `signal`, and exports that a package
loads when they are first used.

Importing the public modules, with the enums around them, would take several milliseconds each.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Callable
else:
    try:
        import _signal as signal
        import _socket as socket
    except ImportError:  # another interpreter
        import signal
        import socket

__all__ = ["lazy_exports", "signal", "socket"]


def lazy_exports(package: str, **places: str) -> Callable[[str], object]:
    """Returns the `__getattr__` of a package. Each keyword maps a name to its module."""

    def find(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(places[name]), name)

    return find
