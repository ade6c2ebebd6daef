"""Small makers for tests of the store: a ledger on a real SQLite file, sessions, prompts, replies."""

from __future__ import annotations

from pathlib import Path

from atlasbridge.core.clock import Clock, ManualClock, iso
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import Answer, AnswerKind, InboundReply, Prompt, PromptRecord, PromptType
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger

YES = Answer(AnswerKind.YES)
NO = Answer(AnswerKind.NO)
ME = "telegram:1"
YES_NO = Prompt(PromptType.TYPE_YES_NO, 0.9, "Continue? (y/n)", safe_default="n", digest="d1")
SECRET = Prompt(
    PromptType.TYPE_FREE_TEXT, 0.9, "Password:", constraints={"secret": True}, safe_default="n", digest="d2"
)
UNKNOWN = Prompt(PromptType.TYPE_UNKNOWN, 0.5, "(END)", safe_default="q", digest="d3")


def open_ledger(home: Path, clock: Clock | None = None, boot_id: str = "boot-1") -> Ledger:
    return Ledger.open(home, clock or ManualClock(), boot_id)


def commits(ledger: Ledger) -> list[str]:
    """Filled with every commit from now on."""
    seen: list[str] = []
    connection = ledger.journal.database.connection
    connection.set_trace_callback(lambda statement: seen.append(statement) if statement == "COMMIT" else None)
    return seen


def make_session(session_id: str = "", tool: str = "bash") -> SessionRecord:
    return SessionRecord(session_id or new_id(), tool, (tool, "-i"), "/srv", 10, 11, iso(1_700_000_000.0))


def ask(ledger: Ledger, prompt: Prompt = YES_NO, ttl_s: float = 60.0, session_id: str = "") -> PromptRecord:
    """A prompt that a person has been shown, in a session of its own unless one is named."""
    if not session_id:
        session = make_session()
        ledger.start_session(session)
        session_id = session.session_id
    record = ledger.raise_prompt(session_id, new_id(), prompt, ttl_s)
    ledger.tell(record.prompt_id, ())
    shown = ledger.deliver_prompt(record.prompt_id, "memory", record.prompt_id[:8])
    assert shown is not None
    return shown


def answer_to(record: PromptRecord, value: str = "y", **changes: object) -> InboundReply:
    fields: dict[str, object] = {
        "channel": "telegram",
        "identity": ME,
        "prompt_id": record.prompt_id,
        "value": value,
        "session_id": record.session_id,
        "nonce": record.nonce,
    }
    return InboundReply(**{**fields, **changes})  # type: ignore[arg-type]
