"""Names that a package exports without importing their modules. A module is imported when one of its names is first
used."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable


def offered(package: str, **places: str) -> Callable[[str], object]:
    """Returns the `__getattr__` of a package. Each keyword maps a name to its module, and after a colon to its name
    there."""

    def asked_for(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        module, _, there = places[name].partition(":")
        return getattr(import_module(module), there or name)

    return asked_for
