"""Rules apart from releases: signed bundles of dialect files, tried on their own examples before a session uses them.

A bundle is JSON: a serial number, dialects as TOML, examples of each, and an Ed25519 signature over all of it.  It can
only say how a tool's dialogs look and which keys of known kinds answer them.  A person names the keys that they trust;
the packaged rules stay, and are back as soon as an update is removed.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

from atlasbridge.adapters.dialect_files import UPDATES, load_dialect, parse_dialect
from atlasbridge.core.errors import DialectError
from atlasbridge.core.fleet_wire import from_text
from atlasbridge.core.prompt.keys import NAMED
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, extend
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View
from atlasbridge.core.system import replace_private

STATE = "state.json"
LIMIT = 4 * 1024 * 1024
TIMEOUT_S = 30.0
_URL = re.compile(r"[a-z]+://")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_KEY_FIELDS = ("cancel", "text_keys", "text_reach", "submit", "text_submit", "follow_keys", "refuse_keys", "toggle")
_CONTROLS = frozenset("\x15\x7f\x1b\r")  # empty the line, backspace, Esc, Enter
_SIZE = (40, 120)
_NO_UPDATES: dict[str, Any] = {"source": "", "serial": 0, "keys": [], "dialects": {}}
_UNTRUSTED = "Look at where it comes from, then run the command again with --trust and its key: {0}"


def signed_text(bundle: dict[str, Any]) -> bytes:
    """What the signature is over: everything but itself, written in one way."""
    said = {name: value for name, value in bundle.items() if name != "signature"}
    return b"atlasbridge dialects\n" + json.dumps(said, sort_keys=True, separators=(",", ":")).encode()


def read_state(home: Path) -> dict[str, Any]:
    """Where updates come from, whose keys are trusted, and which dialects were updated."""
    try:
        known = json.loads((home / UPDATES / STATE).read_text("utf-8"))
    except FileNotFoundError:
        return dict(_NO_UPDATES)
    except (OSError, ValueError, RecursionError) as error:
        raise DialectError(f"{home / UPDATES / STATE}: cannot be read: {error}", "Remove the file.") from None
    if not isinstance(known, dict) or any(
        type(known.get(name)) is not type(usual) for name, usual in _NO_UPDATES.items()
    ):
        raise DialectError(f"{home / UPDATES / STATE}: it was not written by this program", "Remove the file.")
    return known


def update(home: Path, source: str = "", trust: str = "") -> dict[str, Any]:
    """Fetch, check and use a bundle; what it said is the new state.  A bundle with a fault changes nothing."""
    state = read_state(home)
    if "\0" in source:
        raise DialectError("no file or page has such a name", "")
    source = source if _URL.match(source) or not source else str(Path(source).expanduser().resolve())
    source = source or state["source"]
    if not source:
        raise DialectError("no update was made yet, so there is no address to ask again", "Name one with --from.")
    bundle = _parse(fetch(source), source)
    keys = list(dict.fromkeys([*state["keys"], *([trust] if trust else [])]))
    _verify(bundle, keys, source)
    if bundle["serial"] < state["serial"]:
        raise DialectError(f"{source}: serial {bundle['serial']} is older than {state['serial']}, which is in use", "")
    checked = {name: check(name, text, bundle["examples"].get(name, ())) for name, text in bundle["dialects"].items()}
    folder = home / UPDATES
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    dialects = {name: known for name, known in state["dialects"].items() if name not in bundle["revoked"]}
    for name in bundle["revoked"]:
        (folder / f"{name}.toml").unlink(missing_ok=True)
    for name, count in checked.items():
        replace_private(folder / f"{name}.toml", bundle["dialects"][name])
        dialects[name] = {"serial": bundle["serial"], "key": bundle["key"], "examples": count}
    state = {"source": source, "serial": bundle["serial"], "keys": keys, "dialects": dialects}
    replace_private(folder / STATE, json.dumps(state, indent=1))
    return {**state, "updated": sorted(checked), "revoked": sorted(bundle["revoked"])}


def remove(home: Path, names: tuple[str, ...] = ()) -> list[str]:
    """Back to the packaged rules, of these tools or of all."""
    state = read_state(home)
    gone = [name for name in state["dialects"] if not names or name in names]
    missing = [name for name in names if name not in gone]
    if missing:
        raise DialectError(f"the rules of {', '.join(missing)} were not updated", "atlasbridge adapters list")
    for name in gone:
        (home / UPDATES / f"{name}.toml").unlink(missing_ok=True)
        del state["dialects"][name]
    if gone:
        replace_private(home / UPDATES / STATE, json.dumps(state, indent=1))
    return gone


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *given: Any) -> urllib.request.Request | None:
        _refuse_plain(given[-1])
        return super().redirect_request(*given)


def _refuse_plain(url: str) -> None:
    if not url.startswith("https://"):
        raise DialectError(f"{url}: updates are fetched over https only", "")


def fetch(source: str) -> bytes:
    """A file, or a page over HTTPS, wherever it redirects."""
    try:
        if not _URL.match(source):
            with Path(source).open("rb") as file:
                return file.read(LIMIT + 1)
        _refuse_plain(source)
        with urllib.request.build_opener(_OnlyHttps).open(source, timeout=TIMEOUT_S) as answer:
            data: bytes = answer.read(LIMIT + 1)
    except (OSError, HTTPException, ValueError) as error:  # no such page, no answer, or no address at all
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection
        raise DialectError(f"{source}: cannot be read: {error}", "") from None
    return data


def _parse(data: bytes, source: str) -> dict[str, Any]:
    try:
        found = json.loads(data) if len(data) <= LIMIT else None
        json.dumps(found, ensure_ascii=False).encode()  # no text that a file could not hold
    except (ValueError, RecursionError):
        found = None
    shape = {"serial": int, "dialects": dict, "examples": dict, "revoked": list, "key": str, "signature": str}
    if not isinstance(found, dict) or set(found) != set(shape):
        raise DialectError(f"{source}: this is no bundle of dialects", f"It has {', '.join(shape)} and nothing else.")
    wrong = [name for name, kind in shape.items() if not isinstance(found[name], kind)]
    names = [*found["dialects"], *found["revoked"]]
    if wrong or not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
        raise DialectError(f"{source}: {', '.join(wrong) or 'a name'} has the wrong kind of value", "")
    return found


def _verify(bundle: dict[str, Any], keys: list[str], source: str) -> None:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise DialectError(
            "signatures cannot be checked here", "Install it: install the updates extra (see docs/install.md)"
        ) from None
    key = from_text(bundle["key"])
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(from_text(bundle["signature"]), signed_text(bundle))
    except (InvalidSignature, ValueError):
        raise DialectError(f"{source}: its signature is wrong", "Nothing was changed.") from None
    if bundle["key"] not in keys:
        raise DialectError(f"{source}: nobody here trusts its key", _UNTRUSTED.format(bundle["key"]))


def check(name: str, text: Any, examples: Any) -> int:
    """How many examples the rules were tried on.  Raises DialectError where they do not do what they say."""
    if not isinstance(text, str) or not isinstance(examples, list) or not examples:
        raise DialectError(f"{name}: rules come with examples of what they read", "")
    own = parse_dialect(text, name)
    if own.name != name or own.extends not in ("generic", name):
        raise DialectError(f"{name}: it must be called so, and extend generic or itself", "")
    _check_keys(own)
    whole = extend(own, load_dialect(own.extends))
    for number, example in enumerate(examples, 1):
        fault = _fault_of(example, whole)
        if fault:
            raise DialectError(f"{name}: example {number} is not read as it says: {fault}", "Nothing was changed.")
    return len(examples)


def _check_keys(dialect: Dialect) -> None:
    """Names of keys, digits and single letters; text is only ever a person's."""
    for rule in dialect.rules:
        if not set(rule.before_text + rule.after_text) <= _CONTROLS:
            raise DialectError(f"{dialect.name}: {rule.id} types text that no person has said", "")
    for menu in dialect.menus:
        words = [word.partition("?")[0] for name in _KEY_FIELDS for word in getattr(menu, name).split()]
        unknown = [word for word in words if word not in NAMED and word != "digit" and len(word) > 1]
        if unknown:
            raise DialectError(f"{dialect.name}: {menu.id} has unknown keys: {', '.join(unknown)}", "")


def _fault_of(example: Any, dialect: Dialect) -> str:
    """`screen`: what the tool writes; `type`: of the prompt, or "none"; `choices`: their labels, where it has some."""
    if not isinstance(example, dict) or not {"screen", "type"} <= set(example) <= {"screen", "type", "choices"}:
        return "it has `screen`, `type` and perhaps `choices`"
    screen = Screen(*_SIZE)
    screen.feed(str(example["screen"]).replace("\n", "\r\n").encode())
    found: Finding = recognise(View.of(screen), Facts(canonical=False, echo=False), dialect)
    if example["type"] == "none":
        return f"{found.type.value} by {found.rule}" if found.structural or found.score >= numbers.LIKELY else ""
    labels = [choice.label for choice in found.choices]
    if found.type.value != example["type"] or labels != example.get("choices", labels):
        return f"{found.type.value} {labels}"
    return ""
