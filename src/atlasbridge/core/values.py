"""Value classes: the part of `dataclasses` that a session needs, at a fraction of its startup cost.

The standard module imports `inspect` and compiles several functions for every class, which noticeably delays each start
with sixty classes. Here one function per class is compiled at its first use, and all classes share the others.
"""

from __future__ import annotations

try:
    from _operator import attrgetter  # the public module adds nothing here and delays each start
except ImportError:  # another interpreter
    from operator import attrgetter

TYPE_CHECKING = False  # type checkers know the name; importing `typing` alone would double a client's start time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Never, TypeVar, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_):
        return lambda decorator: decorator


_waiting: list[Callable[[], None]] = []


class _Made:
    """A default that is created for each object."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], T]) -> T:
    """For a default that must not be shared, such as a list."""
    made: Any = _Made(default_factory)
    return made  # type: ignore[no-any-return]  # what a checker sees is the default's own type


class _Value:
    """The common base class. Two values are equal if they have the same class and equal fields."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()
    _values: Callable[[Any], Any] = staticmethod(lambda self: ())

    def __eq__(self, other: object) -> bool:
        return self._values(self) == self._values(other) if other.__class__ is self.__class__ else NotImplemented

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in as_dict(self).items())
        return f"{self.__class__.__qualname__}({shown})"

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return self.__class__, tuple(as_dict(self).values())


class _Frozen(_Value):
    __slots__ = ()

    def __hash__(self) -> int:
        return hash(self._values(self))

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError(f"{self.__class__.__qualname__} is not to be changed: {name}")

    def __delattr__(self, name: str) -> Never:
        raise AttributeError(f"{self.__class__.__qualname__} is not to be changed: {name}")


class _Mutable(_Value):
    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Class decorator: an immutable value whose fields are the annotated names."""
    return _with_slots(cls, _Frozen)


@dataclass_transform(field_specifiers=(field,))
def mutable(cls: type[T]) -> type[T]:
    """Like `frozen`, but its fields can be set."""
    return _with_slots(cls, _Mutable)


def as_dict(item: object) -> dict[str, Any]:
    names: tuple[str, ...] = item.__match_args__  # type: ignore[attr-defined]
    if len(names) < 2 or not isinstance(item, _Value):  # a dataclass of the interfaces that the specification fixes
        return {name: getattr(item, name) for name in names}
    return dict(zip(names, item._values(item), strict=True))


def replace(item: T, **changes: Any) -> T:
    """Returns a copy with some fields changed."""
    return item.__class__(**as_dict(item) | changes)


def _with_slots(cls: type[T], base: type) -> type[T]:
    """Creates the class again with its body, because slots must be known when a class is created."""
    if cls.__bases__ != (object,):
        raise TypeError(f"{cls.__qualname__}: a value class has no base of its own")
    names = tuple(cls.__annotations__)
    body = {name: value for name, value in vars(cls).items() if name not in (*names, "__dict__", "__weakref__")}
    made: Any = type(cls.__name__, (base,), {**body, "__slots__": names, "__match_args__": names})
    if names:
        made._values = staticmethod(attrgetter(*names))
    made.__init__ = _first_initialiser(made, {name: vars(cls)[name] for name in names if name in vars(cls)})
    made.__qualname__ = cls.__qualname__
    return made  # type: ignore[no-any-return]


def _first_initialiser(made: Any, defaults: dict[str, Any]) -> Callable[..., None]:
    """The initialiser until the first object is created. Many classes are never used, and compiling costs more than
    creating the class."""

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        compile_it()
        made.__init__(self, *values, **named)

    def compile_it() -> None:
        made.__init__ = _initialiser(made, defaults)

    _waiting.append(compile_it)
    return __init__


def compile_initialisers() -> None:
    """Compiles the initialisers of all classes so far, for a process whose forked children should find them
    compiled."""
    while _waiting:
        _waiting.pop()()


def _initialiser(made: Any, defaults: dict[str, Any]) -> Callable[..., None]:
    """Compiles an `__init__` that takes the fields as arguments. It sets each slot directly, so that the `__setattr__`
    of a frozen class does not refuse it."""
    names = made.__match_args__
    known = {f"_default_{name}": value for name, value in defaults.items()}
    known |= {f"_set_{name}": vars(made)[name].__set__ for name in names}
    arguments = ["self", *(f"{name}=_default_{name}" if name in defaults else name for name in names)]
    lines = []
    for name in names:
        fresh = isinstance(defaults.get(name), _Made)
        value = f"{name}.make() if {name} is _default_{name} else {name}" if fresh else name
        lines.append(f"    _set_{name}(self, {value})")
    exec(f"def __init__({', '.join(arguments)}):\n" + ("\n".join(lines) or "    pass"), known)
    return known["__init__"]  # type: ignore[no-any-return]
