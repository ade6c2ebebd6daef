"""Types as data: reads and writes JSON values according to a type, and describes a type as JSON Schema.

The table of operations consists of types. The socket, the HTTP server, the OpenAPI document and the client library use
them through this module. Values are never converted silently: a string is not a number, and a number is not a boolean.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from atlasbridge.core.values import as_dict, frozen

REF: Final = "#/components/schemas/"
_PLAIN: Final[dict[Any, str]] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_CALLED: Final = {"string": "a text", "boolean": "true or false", "integer": "a whole number", "number": "a number"}


class BadValue(ValueError):
    """A value does not match its type; the message names the field and the expected type."""


@frozen
class Is:
    """Constraints that a type alone does not express. For a string or a list, `least` and `most` limit its length."""

    about: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    pattern: str = ""
    maybe: bool = False  # a field that can be missing
    only: str = ""  # "socket" or "http": the field exists only on that transport
    key: str = ""  # in JSON, the value is the only field of an object, under this name
    rest: bool = False  # collects the unknown fields of an object; in JSON they are beside the others


@lru_cache(maxsize=512)
def fields_of(kind: Any) -> dict[str, Any]:
    """The fields of a value class, or the parameters of a function, with their types."""
    # only the class's own annotations: its bases have no fields
    own = SimpleNamespace(__annotations__=kind.__annotations__)
    return get_type_hints(own, vars(sys.modules[kind.__module__]), include_extras=True)


@lru_cache(maxsize=512)
def marks_of(kind: Any) -> tuple[Any, tuple[Is, ...]]:
    """Splits an annotated type into the type and its constraints."""
    if get_origin(kind) is not Annotated:
        return kind, ()
    inner, *said = get_args(kind)
    deeper, more = marks_of(inner)
    return deeper, (*more, *(one for one in said if isinstance(one, Is)))


def is_value(kind: Any) -> bool:
    return isinstance(kind, type) and "__match_args__" in vars(kind)


def read(kind: Any, value: Any, where: str = "") -> Any:
    """Converts a JSON value to its type. Raises BadValue. Unknown fields of a value class are ignored, because the
    sender can be a newer version."""
    inner, marks = marks_of(kind)
    for key in (mark.key for mark in marks if mark.key):
        if not isinstance(value, Mapping) or key not in value:
            raise BadValue(_say(where, f"should be an object with {key}"))
        value = value[key]
    found = _read(inner, value, where)
    for mark in marks:
        _check(mark, found, where)
    return found


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return value
    if origin in (Union, UnionType):
        if value is None and NoneType in arguments:
            return None
        return read(next(argument for argument in arguments if argument is not NoneType), value, where)
    if origin is Literal:
        if not isinstance(value, str) or value not in arguments:
            raise BadValue(_say(where, f"should be one of {', '.join(arguments)}"))
        return value
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            raise BadValue(_say(where, "should be a list"))
        return tuple(read(arguments[0], item, f"{where}.{number}") for number, item in enumerate(value))
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise BadValue(_say(where, "should be an object"))
        return {str(name): read(arguments[1], item, f"{where}.{name}") for name, item in value.items()}
    if is_value(kind):
        return _read_fields(kind, value, where)
    return _read_plain(kind, value, where)


def _read_fields(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise BadValue(_say(where, "should be an object"))
    known = fields_of(kind)
    given = {name: read(known[name], value[name], f"{where}.{name}".strip(".")) for name in known if name in value}
    if rest := _rest_of(kind):
        given[rest] = {name: item for name, item in value.items() if name not in known}
    try:
        return kind(**given)
    except TypeError:
        missing = next((name for name in known if name not in given), "a field")
        raise BadValue(_say(f"{where}.{missing}".strip("."), "is missing")) from None


@lru_cache(maxsize=512)
def _rest_of(kind: Any) -> str:
    return next((name for name, inner in fields_of(kind).items() if any(mark.rest for mark in marks_of(inner)[1])), "")


def _read_plain(kind: Any, value: Any, where: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            raise BadValue(_say(where, f"should be one of {', '.join(str(one.value) for one in kind)}")) from None
    number = isinstance(value, int) and not isinstance(value, bool)
    fits = {
        # a lone surrogate cannot be encoded as UTF-8, so it could be neither stored nor sent
        str: isinstance(value, str) and (value.isascii() or not re.search("[\ud800-\udfff]", value)),
        bool: isinstance(value, bool),
        int: number,
        float: (number and abs(value) < 2**1023) or (isinstance(value, float) and math.isfinite(value)),
    }[kind]
    if not fits:
        raise BadValue(_say(where, f"should be {_CALLED[_PLAIN[kind]]}"))
    return float(value) if kind is float else value


def _check(mark: Is, value: Any, where: str) -> None:
    if value is None:
        return
    size = len(value) if isinstance(value, str | tuple) else value
    unit = " characters" if isinstance(value, str) else " items" if isinstance(value, tuple) else ""
    if mark.least is not None and size < mark.least:
        raise BadValue(
            _say(where, f"should have at least {mark.least:g}{unit}" if unit else f"is less than {mark.least:g}")
        )
    if mark.most is not None and size > mark.most:
        raise BadValue(
            _say(where, f"should have at most {mark.most:g}{unit}" if unit else f"is more than {mark.most:g}")
        )
    if mark.above is not None and size <= mark.above:
        raise BadValue(_say(where, f"should be more than {mark.above:g}"))
    # `$` would also match before a final line break
    if mark.pattern and not re.search(re.sub(r"\$$", r"\\Z", mark.pattern), value):
        raise BadValue(_say(where, "has characters that are not allowed here"))


def _say(where: str, what: str) -> str:
    return f"{where or 'the value'}: {what}"


def read_text(kind: Any, text: str, where: str) -> Any:
    """Reads a value from a URL: true, false, digits, or the text itself."""
    inner, _ = marks_of(kind)
    if inner is bool:
        if text not in ("true", "false"):
            raise BadValue(_say(where, "should be true or false"))
        return text == "true"
    if inner is int:
        if not (text.isascii() and text.isdigit() and len(text) < 17):
            raise BadValue(_say(where, "should be a whole number"))
        return read(kind, int(text), where)
    return read(kind, text, where)


def write(value: Any, way: str = "") -> Any:
    """The inverse of `read`: returns plain JSON. `way` is "socket" or "http"; fields that exist only on the other
    transport are left out."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {name: write(item, way) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [write(item, way) for item in value]
    kind: Any = type(value)
    if not is_value(kind):
        return value
    kinds = fields_of(kind) if way else {}
    plain = {name: write(item, way) for name, item in as_dict(value).items() if _goes(kinds.get(name), way)}
    return {**plain, **plain.pop(_rest_of(kind), {})}


def _goes(kind: Any, way: str) -> bool:
    return not way or all(mark.only in ("", way) for mark in marks_of(kind)[1])


def describe(kind: Any, components: dict[str, Any]) -> dict[str, Any]:
    """Returns the JSON Schema of a type. Value classes are added to `components` and referenced."""
    inner, marks = marks_of(kind)
    out = _describe(inner, components)
    for mark in marks:
        out = {**out, **_limits(mark, out)}
        if mark.key:
            out = {"type": "object", "properties": {mark.key: out}, "required": [mark.key]}
    return out


def _describe(kind: Any, components: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return {}
    if origin in (Union, UnionType):
        some = [describe(argument, components) for argument in arguments if argument is not NoneType]
        return {"anyOf": [*some, {"type": "null"}]} if NoneType in arguments else {"anyOf": some}
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (tuple, list):
        return {"type": "array", "items": describe(arguments[0], components)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": describe(arguments[1], components) or True}
    if is_value(kind):
        return _refer(kind, components)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"type": "string", "enum": [one.value for one in kind]}
    return {"type": _PLAIN[kind]}


def _refer(kind: Any, components: dict[str, Any]) -> dict[str, Any]:
    known = fields_of(kind)
    # a generated client has one local name for an object and for its field of the same name
    name = f"{kind.__name__}Object" if kind.__name__.lower() in known else kind.__name__
    if name not in components:
        components[name] = {}  # set first, because a class can refer to itself
        known = {field: inner for field, inner in known.items() if _goes(inner, "http") and field != _rest_of(kind)}
        properties = {field: describe(inner, components) for field, inner in known.items()}
        required = [field for field, inner in known.items() if not any(mark.maybe for mark in marks_of(inner)[1])]
        components[name] = {"type": "object", "properties": properties, "required": sorted(required)}
    return {"$ref": REF + name}


def _limits(mark: Is, out: Mapping[str, Any]) -> dict[str, Any]:
    names = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}
    least, most = names.get(str(out.get("type")), ("minimum", "maximum"))
    plain = {least: mark.least, most: mark.most, "exclusiveMinimum": mark.above}
    limits: dict[str, Any] = {name: value for name, value in plain.items() if value is not None}
    if mark.pattern:
        limits["pattern"] = mark.pattern
    if "anyOf" in out and limits:  # the limits apply to the non-null alternative
        kind = {"type": out["anyOf"][0].get("type")}
        first = {**out["anyOf"][0], **_limits(Is("", mark.least, mark.most, mark.above, mark.pattern), kind)}
        limits = {"anyOf": [first, *out["anyOf"][1:]]}
    return {**limits, **({"description": mark.about} if mark.about else {})}
