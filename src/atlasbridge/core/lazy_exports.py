"""Names that a package offers without importing the modules in which they live: who asks for one pays for it."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable


def offered(package: str, **places: str) -> Callable[[str], object]:
    """The `__getattr__` of a package: each name with its module, and after a colon what it is called there."""

    def asked_for(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        module, _, there = places[name].partition(":")
        return getattr(import_module(module), there or name)

    return asked_for
