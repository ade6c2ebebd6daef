"""The hub's passkeys: who is allowed to enrol one, what an approval must sign, and whether the signature is valid.

If a rule says `proof = "passkey"`, an approval counts only with the signature of an enrolled key over this prompt and
this answer; a denial needs none. A login or a token alone cannot enrol a key: a new key needs a code from a terminal,
or the signature of a key that is already enrolled. `audit.signed_approval` verifies signatures.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from atlasbridge.core.audit import signed_approval
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.signed_approval import Assertion, Passkey, PasskeyRefused
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.policy.choice import agrees
from atlasbridge.core.policy.people import PAGE, PROOF
from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.model import Answer, InboundReply, PromptRecord, Refusal, Reject
from atlasbridge.core.values import as_dict, replace

NOTE: Final = "passkeys"  # the store's note that contains them
CODE_S: Final = 600.0
BEGUN_S: Final = 300.0
MOST: Final = 64
NAME_LIMIT: Final = 40


class Notes(Protocol):
    """The part of the store that is needed here."""

    def remember(self, key: str, value: str) -> None: ...
    def recall(self, key: str, default: str = "") -> str: ...
    def note(self, event: str, **fields: Any) -> None: ...


class Passkeys:
    def __init__(self, notes: Notes, clock: Clock, tell: Callable[[str], None]) -> None:
        self._notes = notes
        self._clock = clock
        self._tell = tell
        self.on_signed: Callable[[], None] = lambda: None  # called once a signed approval is recorded
        self._codes: dict[str, float] = {}  # digest -> expiry; only in memory, so a restart invalidates all codes
        self._begun: dict[str, tuple[str, float]] = {}  # challenge -> (name of the page, expiry)

    def all(self) -> list[Passkey]:
        return [Passkey(**item) for item in json.loads(self._notes.recall(NOTE, "[]"))]

    def listed(self) -> list[dict[str, Any]]:
        return [key.to_json() for key in self.all()]

    def get_ready(self) -> None:
        signed_approval.load_library()

    def _save(self, keys: Iterable[Passkey]) -> None:
        self._notes.remember(NOTE, json.dumps([as_dict(key) for key in keys]))

    # enrolling

    def make_code(self) -> str:
        """Creates a code that enrols one key, once and soon. Only a person's own terminal gets one."""
        now = self._clock.now()
        self._codes = {known: until for known, until in self._codes.items() if until > now}
        code = secrets.token_hex(16)
        self._codes[_digest(code)] = now + CODE_S
        return code

    def begin(self, rp_id: str) -> dict[str, Any]:
        """Creates a challenge for a new key. `keys` are the keys of this page that can confirm it."""
        if why := signed_approval.why_not_here(rp_id):
            raise PasskeyRefused(why, self._elsewhere())
        now = self._clock.now()
        self._begun = {known: item for known, item in self._begun.items() if item[1] > now}
        challenge = secrets.token_hex(32)
        self._begun[challenge] = (rp_id, now + BEGUN_S)
        own = [key.key_id for key in self.all() if key.rp_id == rp_id]
        return {"challenge": challenge, "rp_id": rp_id, "keys": own, "user": _digest(rp_id)[:32]}

    def add(self, given: Mapping[str, Any], origins: Iterable[str], by: str) -> dict[str, Any]:
        """Enrols a key. Raises PasskeyRefused. A code is used up even if the key is refused."""
        challenge = str(given.get("challenge", ""))
        rp_id, until = self._begun.pop(challenge, ("", 0.0))
        if until <= self._clock.now():
            raise PasskeyRefused("This took too long, or was begun before the hub was restarted. Begin again.")
        raw, pages = bytes.fromhex(challenge), tuple(origins)
        confirmed = self._confirm(given, raw, rp_id, pages)
        key_id, public_key, count = signed_approval.check_new_key(given, raw, rp_id, pages)
        known = self.all()
        if any(key.key_id == key_id for key in known):
            raise PasskeyRefused("This passkey is enrolled already.")
        if len(known) >= MOST:
            raise PasskeyRefused("There are too many passkeys; remove one first.")
        name = escape_controls(str(given.get("name", "")), keep_lines=False).strip()[:NAME_LIMIT] or "passkey"
        key = Passkey(key_id, name, rp_id, public_key, iso(self._clock.wall()), by, count)
        fields = {"key_id": key_id, "name": name, "rp_id": rp_id, "public_key": public_key, "confirmed_by": confirmed}
        self._notes.note(AuditEvent.PASSKEY_ADDED, **fields, decided_by=by)
        self._save([*known, key])
        self._tell(f'A passkey was added: "{name}" for {rp_id}. If that was not you: atlasbridge passkey remove')
        return key.to_json()

    def _confirm(self, given: Mapping[str, Any], challenge: bytes, rp_id: str, origins: tuple[str, ...]) -> str:
        """Returns what authorises the enrolment, for the audit log: a code, or the id of the confirming key."""
        code = str(given.get("code") or "")
        if code and self._codes.pop(_digest(code), 0.0) > self._clock.now():
            return "code"
        signed = given.get("confirm")
        if not isinstance(signed, Mapping):
            raise PasskeyRefused("A new passkey needs a code.", "get one in a terminal: atlasbridge passkey add")
        assertion = Assertion.read(signed)
        key = self._find(assertion.key_id, rp_id)
        self._use(key, signed_approval.check_assertion(key, assertion, challenge, origins))
        return key.key_id

    def remove(self, word: str, by: str) -> str:
        """Removes a key by its id, the beginning of its id, or its name. Returns "" if there is none, or more than
        one."""
        keys = self.all()
        found = [key for key in keys if word and (key.name == word or key.key_id.startswith(word.lower()))]
        if len(found) != 1:
            return ""
        self._notes.note(AuditEvent.PASSKEY_REMOVED, key_id=found[0].key_id, name=found[0].name, decided_by=by)
        self._save(key for key in keys if key != found[0])
        self._tell(f'The passkey "{found[0].name}" was removed: it agrees to nothing any more.')
        return found[0].name

    # approvals

    def ask(self, record: PromptRecord, value: str, as_text: bool, rp_id: str) -> dict[str, Any] | Reject:
        """Returns what the page must have signed before it sends this answer; `needed` is false if no signature is
        required."""
        answer = decide_answer(record.prompt, value, as_text=as_text)
        if isinstance(answer, Reject):
            return answer
        if not _wants(record, answer):
            return {"needed": False, "challenge": "", "rp_id": rp_id, "keys": []}
        if why := signed_approval.why_not_here(rp_id):
            return Reject(Refusal.NEEDS_PASSKEY, f"{why} {self._elsewhere(record)}")
        own = [key.key_id for key in self.all() if key.rp_id == rp_id]
        if not own:
            return Reject(Refusal.NEEDS_PASSKEY, _NONE.format(rp_id))
        challenge = signed_approval.challenge_of(record, answer).hex()
        return {"needed": True, "challenge": challenge, "rp_id": rp_id, "keys": own}

    def check(self, record: PromptRecord, reply: InboundReply, answer: Answer) -> dict[str, Any] | Reject:
        """Returns the signature for the audit entry of this answer, empty if none is needed, or the refusal."""
        if not _wants(record, answer):
            return {}
        if not reply.passkey:
            return self.refuse(record)
        try:
            given = Assertion.read(reply.passkey)
            key = self._find(given.key_id)
            origins = [str(origin) for origin in reply.passkey.get("origins", ())]
            count = signed_approval.check_assertion(key, given, signed_approval.challenge_of(record, answer), origins)
        except PasskeyRefused as error:
            return Reject(Refusal.NEEDS_PASSKEY, f"{error} {error.hint}".strip())
        self._use(key, count)
        self.on_signed()
        return {signed_approval.FIELD: {**as_dict(given), **signed_approval.signed_fields(record, answer)}}

    def refuse(self, record: PromptRecord) -> Reject:
        rule = record.prompt.constraints[PROOF].get("rule", "")
        sentence = f"The rule {rule!r} wants a passkey for this. {self._elsewhere(record)} A refusal needs none."
        return Reject(Refusal.NEEDS_PASSKEY, sentence)

    def refuse_early(self, record: PromptRecord, answer: Answer) -> Reject | None:
        """For a scheduled answer: when it is due, nobody is there to sign it."""
        return self.refuse(record) if _wants(record, answer) else None

    def _elsewhere(self, record: PromptRecord | None = None) -> str:
        page = self._notes.recall(PAGE)
        where = f"{page}/#prompt/{record.prompt_id}" if record is not None else page
        return f"Answer it on the page: {where}" if page else "Answer it on the page: atlasbridge web"

    def _find(self, key_id: str, rp_id: str = "") -> Passkey:
        for key in self.all():
            if key.key_id == key_id and rp_id in ("", key.rp_id):
                return key
        raise PasskeyRefused("This passkey is not enrolled here, or was removed.")

    def _use(self, used: Passkey, count: int) -> None:
        if count != used.count:
            self._save(replace(key, count=count) if key.key_id == used.key_id else key for key in self.all())


_NONE = "No passkey is enrolled for {}. Add one: atlasbridge passkey add"


def _wants(record: PromptRecord, answer: Answer) -> bool:
    return PROOF in record.prompt.constraints and agrees(record.prompt, answer)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
