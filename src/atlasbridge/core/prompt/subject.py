"""What an answer is about: the whole command, edit, page or question, and how sure we are that it is whole.

Policy and grants look at nothing else.  Where it comes from (a hook, an event, the screen) is decided in `detection`.
"""

from __future__ import annotations

from _blake2 import blake2s  # as hashlib has it, but without loading OpenSSL into every session
from enum import StrEnum
from typing import Any

from atlasbridge.core.values import frozen, replace


class SubjectKind(StrEnum):
    COMMAND = "command"  # a line for a shell
    EDIT = "edit"  # a file that is to be changed or written; the text says how
    FETCH = "fetch"  # a page of the web
    PLAN = "plan"
    QUESTION = "question"  # words that are no more than words
    TOOL = "tool"  # a tool of another server, with its arguments
    TRUST = "trust"  # a folder or a server that is to be trusted


class SubjectSource(StrEnum):
    """In the order in which they are believed."""

    HOOK = "hook"
    EVENT = "event"
    CALLER = "caller"  # a program without a screen asked by itself
    SCREEN = "screen"


@frozen
class Subject:
    """`text` is whole and as the tool has it; it stays inside this machine.  `shown` is what may leave it."""

    kind: SubjectKind
    text: str
    folder: str = ""  # where it would run
    source: SubjectSource = SubjectSource.SCREEN
    complete: bool = False  # nothing scrolled away, nothing was cut
    shown: str = ""
    target: str = ""  # the file of an edit (or its files, one a line), the address of a fetch
    digest: str = ""  # of `text`; stays when the text itself is not kept

    @property
    def certain(self) -> bool:
        """Whether a rule may look at it: all of it is here, and nothing of it was hidden or cut."""
        return self.complete and bool(self.text) and self.shown == self.text

    @property
    def targets(self) -> tuple[str, ...]:
        """One edit may change several files."""
        return tuple(line for line in self.target.split("\n") if line)

    def kept(self) -> Subject:
        """What a store may keep: a digest and what may be shown, never the text itself."""
        return replace(self, text="", digest=self.digest or digest_text(self.text))

    def restored(self) -> Subject:
        """A stored subject keeps only what may be shown; where that is all of it, it is the text itself."""
        if self.text or not self.shown or digest_text(self.shown) != self.digest:
            return self
        return replace(self, text=self.shown)

    def to_json(self) -> dict[str, Any]:
        """The public face."""
        return {
            "kind": self.kind.value,
            "text": self.shown,
            "folder": self.folder,
            "source": self.source.value,
            "complete": self.complete,
            "target": self.target,
        }


def told_subject(data: object) -> Subject | None:
    """What a hook or an event said, as it came over a socket; None when it is not what we know.  What is shown of it
    is left to who redacts."""
    if not isinstance(data, dict):
        return None
    try:
        kind, source = SubjectKind(data["kind"]), SubjectSource(data.get("source", "hook"))
    except (KeyError, ValueError):
        return None
    texts = {name: str(data.get(name, "")) for name in ("text", "folder", "target")}
    return Subject(kind, source=source, complete=data.get("complete") is True, **texts)


def digest_text(text: str) -> str:
    return blake2s(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
