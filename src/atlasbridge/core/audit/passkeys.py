"""Passkeys: who is allowed to enrol one, what a person signs for an approval, and whether a signature is valid.

If a rule says `proof = "passkey"`, an approval counts only with the signature of an enrolled key over this prompt and
this answer; a denial needs none. A login or a token alone cannot enrol a key: a new key needs a code from a terminal,
or the signature of a key that is already enrolled. A key of a fleet's page counts once a person accepts it in a
terminal of this machine; what the fleet server says about keys never counts. The hub checks a signature before it
claims an answer; `audit verify` checks it again later from the log alone.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from atlasbridge.core.audit.chain import Fault
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.policy.approval import PAGE, PROOF, agrees, refusing_forms
from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.model import Answer, InboundReply, Prompt, PromptRecord, Refusal, Reject
from atlasbridge.core.prompt.redact import GONE
from atlasbridge.core.values import as_dict, frozen, replace

FIELD: Final = "passkey"  # field of an audit entry: the assertion that came with the answer
REFUSALS: Final = "refusals"  # field of PROMPT_DETECTED if a rule requires a passkey: the answers that need none
PURPOSE: Final = "atlasbridge answer"  # a signature for another purpose is never accepted for an answer
INSTALL: Final = "install the extra passkey where the hub or the fleet server runs (see docs/install.md)"
NAMED: Final = "open the fleet's page by its name, over https or as localhost, and add the passkey there"
COPY: Final = "copy the whole command from the fleet's page: Settings, Passkeys"
FLEET: Final = "server"  # the channel of a fleet's people
NOT_NEEDED: Final = {"needed": False, "challenge": "", "rp_id": "", "keys": []}
LONGEST: Final = 8192  # maximum size of a part of an assertion in bytes


def canonical(fields: Mapping[str, Any]) -> str:
    """One text per meaning: sorted keys, no spaces, ASCII only."""
    return json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


class PasskeyRefused(AtlasBridgeError):
    """The signature or the new key is invalid; the message says why."""


@frozen
class Passkey:
    """A key that a person enrolled. The private key never leaves the phone or laptop that created it."""

    key_id: str  # the authenticator's id for it, in hexadecimal
    name: str
    rp_id: str  # the host name for which the browser keeps it
    public_key: str  # COSE, in hexadecimal
    created_at: str = ""
    by: str = ""  # who enrolled it
    count: int = 0  # the authenticator's counter at its last use; many always report 0
    person: str = ""  # the only identity that it signs for, such as "server:alice"; "": a key of the hub's own page
    origin: str = ""  # with `person`: the address of the fleet's page

    @property
    def origins(self) -> tuple[str, ...] | None:
        """The pages on which it signs, if the key itself says so."""
        return (self.origin,) if self.person else None

    def to_json(self) -> dict[str, Any]:
        """The fields that people need to distinguish keys."""
        shown = as_dict(self)
        return {name: shown[name] for name in ("key_id", "name", "rp_id", "created_at", "by", "person")}


@frozen
class Assertion:
    """The browser's result after a person has confirmed with the key; all in hexadecimal."""

    key_id: str
    client_data: str
    authenticator_data: str
    signature: str

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Assertion:
        """Raises PasskeyRefused if it is not an assertion."""
        values = [data.get(name) for name in ("key_id", "client_data", "authenticator_data", "signature")]
        if not all(isinstance(value, str) and is_hex(value) for value in values):
            raise PasskeyRefused("This is no signature of a passkey.")
        return cls(*map(str, values))


def is_hex(text: str) -> bool:
    return 0 < len(text) <= 2 * LONGEST and len(text) % 2 == 0 and set(text) <= set("0123456789abcdef")


def digest_question(prompt: Prompt) -> str:
    """A digest of everything that a person must read before an approval, and of what the host compares before it
    types."""
    shown = {
        "asked": prompt.asked,
        "choices": [[choice.value, choice.label, choice.detail] for choice in prompt.choices],
        "screen": prompt.digest,
        "subject": prompt.subject.for_storage().digest if prompt.subject is not None else "",
    }
    return hashlib.sha256(canonical(shown).encode("ascii")).hexdigest()


def signed_fields(record: PromptRecord, answer: Answer) -> dict[str, str]:
    """The additional fields of the audit entry, with which the signature can be checked again."""
    asked = _asked_fields(record)
    return {**asked, "answer": digest_answer(asked["nonce"], answer.kind.value, answer.spoken)}


def _asked_fields(record: PromptRecord) -> dict[str, str]:
    nonce = hashlib.sha256(record.nonce.encode()).hexdigest()
    return {"question": digest_question(record.prompt), "nonce": nonce}


def signing_data(record: PromptRecord) -> dict[str, Any]:
    """What a fleet server needs to ask a browser for a signature: digests, and the answers that need none."""
    return {**_asked_fields(record), "refusals": refusing_forms(record.prompt)}


def needs_none(refusals: Iterable[str], kind: str, value: str) -> bool:
    """Whether an answer is one of the refusals that `refusing_forms` has written down."""
    free = frozenset(refusals)
    return f"{kind}:" in free or f"{kind}:{value}" in free


def digest_answer(nonce: str, kind: str, value: str) -> str:
    """A digest of the whole answer, even if the log contains it redacted."""
    return hashlib.sha256(canonical({"nonce": nonce, "kind": kind, "value": value}).encode("ascii")).hexdigest()


def challenge(entry: Mapping[str, Any], signed: Mapping[str, Any]) -> bytes:
    """The data that the key signs: the prompt, its session, its question, its one-time nonce, and this answer."""
    fields = {
        "for": PURPOSE,
        "prompt_id": entry["prompt_id"],
        "session_id": entry["session_id"],
        "question": signed["question"],
        "nonce": signed["nonce"],
        "answer": signed["answer"],
    }
    return hashlib.sha256(canonical(fields).encode("ascii")).digest()


def challenge_of(record: PromptRecord, answer: Answer) -> bytes:
    return challenge({"prompt_id": record.prompt_id, "session_id": record.session_id}, signed_fields(record, answer))


def why_not_here(host: str) -> str:
    """Why a browser that opened the page under this host name cannot use a passkey; "" if it can."""
    try:
        ip_address(host)
    except ValueError:
        return "" if host else "The page's own name is not known."
    return "Browsers allow passkeys only for a name, never for an address such as this one."


def is_origin_of(origin: str, rp_id: str) -> bool:
    """A browser offers a key only to its own host name, over TLS or on this machine."""
    parts = urlsplit(origin)
    return parts.hostname == rp_id and (parts.scheme == "https" or (parts.scheme == "http" and rp_id == "localhost"))


def check_assertion(key: Passkey, given: Assertion, wanted: bytes, origins: Iterable[str] | None = None) -> int:
    """Verifies an assertion and returns the authenticator's new counter. Raises PasskeyRefused.

    `origins` are the page's own addresses, because the page of any program on `localhost` can request a key for that
    name. None means that they are no longer known, for example when the log is read years later; then only the host
    name must match.
    """
    origin = _origin(given)
    if not is_origin_of(origin, key.rp_id) or (origins is not None and origin not in set(origins)):
        raise PasskeyRefused(f"This was signed on another page ({origin}).")
    webauthn = load_library()
    raw = bytes.fromhex(given.key_id)
    name = webauthn.helpers.bytes_to_base64url(raw)
    parts = {
        name: webauthn.helpers.bytes_to_base64url(bytes.fromhex(value))
        for name, value in (
            ("clientDataJSON", given.client_data),
            ("authenticatorData", given.authenticator_data),
            ("signature", given.signature),
        )
    }
    try:
        done = webauthn.verify_authentication_response(
            credential={"id": name, "rawId": name, "type": "public-key", "response": parts},
            expected_challenge=wanted,
            expected_rp_id=key.rp_id,
            expected_origin=origin,
            credential_public_key=bytes.fromhex(key.public_key),
            credential_current_sign_count=key.count,
            require_user_verification=True,
        )
    except webauthn.helpers.exceptions.WebAuthnException as error:
        raise PasskeyRefused(f"The passkey's signature does not fit: {error}.") from error
    return int(done.new_sign_count)


def check_new_key(data: Mapping[str, Any], wanted: bytes, rp_id: str, origins: Iterable[str]) -> tuple[str, str, int]:
    """Returns the id, public key and counter of a key that a browser has just created. Raises PasskeyRefused."""
    webauthn = load_library()
    values = {name: str(data.get(name, "")) for name in ("key_id", "client_data", "attestation")}
    if not all(map(is_hex, values.values())):
        raise PasskeyRefused("This is no new passkey.")
    code = {name: webauthn.helpers.bytes_to_base64url(bytes.fromhex(value)) for name, value in values.items()}
    response = {"clientDataJSON": code["client_data"], "attestationObject": code["attestation"]}
    try:
        made = webauthn.verify_registration_response(
            credential={"id": code["key_id"], "rawId": code["key_id"], "type": "public-key", "response": response},
            expected_challenge=wanted,
            expected_rp_id=rp_id,
            expected_origin=[origin for origin in origins if is_origin_of(origin, rp_id)],
            require_user_verification=True,
        )
    except webauthn.helpers.exceptions.WebAuthnException as error:
        raise PasskeyRefused(f"The new passkey was not taken: {error}.") from error
    return made.credential_id.hex(), made.credential_public_key.hex(), int(made.sign_count)


def read_origin(text: str) -> str:
    """Returns the address of a page as a browser writes it: without a path. Raises PasskeyRefused."""
    try:
        parts = urlsplit(text.strip().lower())
    except ValueError as error:  # half an address in brackets
        raise PasskeyRefused(f"{text!r} is not the address of a fleet's page.", COPY) from error
    origin, name = f"{parts.scheme}://{parts.netloc}", parts.hostname or ""
    if why := why_not_here(name):
        raise PasskeyRefused(why, NAMED)
    if not is_origin_of(origin, name) or parts.username or parts.path.strip("/"):
        raise PasskeyRefused(f"{text!r} is not the address of a fleet's page.", NAMED)
    return origin


def check_public_key(public_key: str) -> None:
    """Raises PasskeyRefused if no signature could ever be checked with it."""
    helpers = load_library().helpers
    try:
        helpers.decode_credential_public_key(bytes.fromhex(public_key))
    except (helpers.exceptions.WebAuthnException, ValueError, TypeError, LookupError) as error:
        raise PasskeyRefused("This is no passkey of a fleet: its public key cannot be read.", COPY) from error


def clean_name(given: object) -> str:
    return escape_controls(str(given or ""), keep_lines=False).strip()[:NAME_LIMIT] or "passkey"


def _origin(given: Assertion) -> str:
    try:
        said = json.loads(bytes.fromhex(given.client_data))
    except (ValueError, RecursionError) as error:
        raise PasskeyRefused("This is no signature of a passkey.") from error
    if not isinstance(said, dict) or said.get("crossOrigin") is True or not isinstance(said.get("origin"), str):
        raise PasskeyRefused("This was signed inside another page.")
    return str(said["origin"])


def load_library() -> Any:
    """Imported when the first passkey is used, because it is large and rarely needed."""
    try:
        import webauthn
        import webauthn.helpers.exceptions
    except ImportError as error:
        raise PasskeyRefused("Passkeys cannot be checked here: webauthn is not installed.", INSTALL) from error
    return webauthn


# the log


class LogWalk:
    """Reads the entries about passkeys, oldest first, and reports invalid ones."""

    def __init__(self) -> None:
        self._keys: dict[str, Passkey] = {}
        self._wanted: dict[str, frozenset[str]] = {}  # by prompt: the answers that need no passkey
        self._voted: set[str] = set()  # prompts that several people approve; the last entry names all of them
        self.unchecked = 0  # signatures that could not be checked, because the library is missing

    EVENTS: Final = (
        AuditEvent.PASSKEY_ADDED,
        AuditEvent.PASSKEY_REMOVED,
        AuditEvent.PROMPT_DETECTED,
        AuditEvent.REPLY_RECEIVED,
        AuditEvent.VOTE_CAST,
    )

    def take(self, entry: Mapping[str, Any]) -> Fault | None:
        match entry.get("event"):
            case AuditEvent.PASSKEY_ADDED:
                names = ("key_id", "name", "rp_id", "public_key", "person", "origin")
                key_id, name, rp_id, public_key, person, origin = (str(entry.get(field, "")) for field in names)
                self._keys[key_id] = Passkey(key_id, name, rp_id, public_key, person=person, origin=origin)
            case AuditEvent.PASSKEY_REMOVED:
                self._keys.pop(str(entry.get("key_id")), None)
            case AuditEvent.PROMPT_DETECTED if REFUSALS in entry:
                self._wanted[str(entry.get("prompt_id"))] = frozenset(map(str, entry[REFUSALS]))
            case AuditEvent.REPLY_RECEIVED | AuditEvent.VOTE_CAST as event:
                if problem := self._problem(entry):
                    return Fault(int(entry["seq"]), problem)
                self._voted |= {str(entry.get("prompt_id"))} if event == AuditEvent.VOTE_CAST else set()
        return None

    def _problem(self, entry: Mapping[str, Any]) -> str:
        signed = entry.get(FIELD)
        if not isinstance(signed, Mapping):
            return "" if self._needs_none(entry) else "agreed without the passkey that its rule wants"
        key = self._keys.get(str(signed.get("key_id")))
        if key is None:
            return "is signed with a passkey that was not enrolled, or had been removed"
        is_theirs = entry.get("event") == AuditEvent.VOTE_CAST or entry.get("prompt_id") not in self._voted
        if key.person and is_theirs and entry.get("decided_by") != key.person:
            return "is signed with another person's passkey"
        if GONE not in str(entry.get("value")) and signed.get("answer") != digest_answer(
            str(signed.get("nonce")), str(entry.get("kind")), str(entry.get("value"))
        ):
            return "names another answer than the one that the passkey signed"
        try:
            check_assertion(key, Assertion.read(signed), challenge(entry, signed), key.origins)
        except (PasskeyRefused, KeyError) as error:
            if isinstance(error, PasskeyRefused) and error.hint == INSTALL:
                self.unchecked += 1
                return ""
            return f"has a passkey's signature that does not fit ({error})"
        return ""

    def _needs_none(self, entry: Mapping[str, Any]) -> bool:
        free = self._wanted.get(str(entry.get("prompt_id")))
        if free is None:
            return True
        return needs_none(free, str(entry.get("kind")), str(entry.get("value", "")))


# The hub's passkeys: who is allowed to enrol one, and what an approval must sign.

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

    def list_all(self) -> list[dict[str, Any]]:
        return [key.to_json() for key in self.all()]

    def get_ready(self) -> None:
        load_library()

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
        if why := why_not_here(rp_id):
            raise PasskeyRefused(why, self._elsewhere())
        now = self._clock.now()
        self._begun = {known: item for known, item in self._begun.items() if item[1] > now}
        challenge = secrets.token_hex(32)
        self._begun[challenge] = (rp_id, now + BEGUN_S)
        own = [key.key_id for key in self._own(rp_id)]
        return {"challenge": challenge, "rp_id": rp_id, "keys": own, "user": _digest(rp_id)[:32]}

    def add(self, given: Mapping[str, Any], origins: Iterable[str], by: str) -> dict[str, Any]:
        """Enrols a key. Raises PasskeyRefused. A code is used up even if the key is refused."""
        challenge = str(given.get("challenge", ""))
        rp_id, until = self._begun.pop(challenge, ("", 0.0))
        if until <= self._clock.now():
            raise PasskeyRefused("This took too long, or was begun before the hub was restarted. Begin again.")
        raw, pages = bytes.fromhex(challenge), tuple(origins)
        confirmed = self._confirm(given, raw, rp_id, pages)
        key_id, public_key, count = check_new_key(given, raw, rp_id, pages)
        name = clean_name(given.get("name"))
        return self._add(Passkey(key_id, name, rp_id, public_key, iso(self._clock.wall()), by, count), confirmed)

    def accept(self, person: str, origin: str, key: str, name: str, by: str) -> dict[str, Any]:
        """Accepts the key with which a person of the fleet signs on the fleet's page. Raises PasskeyRefused. Only a
        person's own terminal can do this: a fleet server that was taken over could name a key of its own."""
        key_id, _, public_key = key.partition(".")
        page = read_origin(origin)
        if not (person.strip() and person.isprintable() and is_hex(key_id) and is_hex(public_key)):
            raise PasskeyRefused("This is no passkey of a fleet.", COPY)
        check_public_key(public_key)
        at = iso(self._clock.wall())
        own = Passkey(key_id, clean_name(name), urlsplit(page).hostname or "", public_key, at, by)
        return self._add(replace(own, person=f"{FLEET}:{person}", origin=page), "terminal")

    def _add(self, key: Passkey, confirmed: str) -> dict[str, Any]:
        known = self.all()
        if any(one.key_id == key.key_id for one in known):
            raise PasskeyRefused("This passkey is already enrolled.")
        if len(known) >= MOST:
            raise PasskeyRefused("There are too many passkeys; remove one first.")
        fields = {name: getattr(key, name) for name in ("key_id", "name", "rp_id", "public_key")}
        fields |= {"person": key.person, "origin": key.origin} if key.person else {}
        self._notes.note(AuditEvent.PASSKEY_ADDED, **fields, confirmed_by=confirmed, decided_by=key.by)
        self._save([*known, key])
        whose = f" of {key.person}" if key.person else ""
        self._tell(
            f'A passkey{whose} was added: "{key.name}" for {key.rp_id}. If that was not you: atlasbridge passkey remove'
        )
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
        key = next((one for one in self._own(rp_id) if one.key_id == assertion.key_id), None)
        if key is None:
            raise PasskeyRefused(_UNKNOWN)
        self._use(key, check_assertion(key, assertion, challenge, origins))
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
            return {**NOT_NEEDED, "rp_id": rp_id}
        if why := why_not_here(rp_id):
            return Reject(Refusal.NEEDS_PASSKEY, f"{why} {self._elsewhere(record)}")
        own = [key.key_id for key in self._own(rp_id)]
        if not own:
            return Reject(Refusal.NEEDS_PASSKEY, _NONE.format(rp_id))
        challenge = challenge_of(record, answer).hex()
        return {"needed": True, "challenge": challenge, "rp_id": rp_id, "keys": own}

    def check(self, record: PromptRecord, reply: InboundReply, answer: Answer) -> dict[str, Any] | Reject:
        """Returns the signature for the audit entry of this answer, empty if none is needed, or the refusal."""
        if not _wants(record, answer):
            return {}
        if not reply.passkey:
            return self.refuse(record, reply.channel)
        try:
            given = Assertion.read(reply.passkey)
            key = self._find(given.key_id, reply)
            origins = key.origins or [str(origin) for origin in reply.passkey.get("origins", ())]
            count = check_assertion(key, given, challenge_of(record, answer), origins)
        except PasskeyRefused as error:
            return Reject(Refusal.NEEDS_PASSKEY, f"{error} {error.hint}".strip())
        self._use(key, count)
        self.on_signed()
        return {FIELD: {**as_dict(given), **signed_fields(record, answer)}}

    def refuse(self, record: PromptRecord, channel: str = "") -> Reject:
        rule = record.prompt.constraints[PROOF].get("rule", "")
        where = "Sign it on the fleet's page." if channel == FLEET else self._elsewhere(record)
        sentence = f"The rule {rule!r} wants a passkey for this. {where} A refusal needs none."
        return Reject(Refusal.NEEDS_PASSKEY, sentence)

    def refuse_early(self, record: PromptRecord, answer: Answer) -> Reject | None:
        """For a scheduled answer: when it is due, nobody is there to sign it."""
        return self.refuse(record) if _wants(record, answer) else None

    def _elsewhere(self, record: PromptRecord | None = None) -> str:
        page = self._notes.recall(PAGE)
        where = f"{page}/#prompt/{record.prompt_id}" if record is not None else page
        return f"Answer it on the page: {where}" if page else "Answer it on the page: atlasbridge web"

    def _own(self, rp_id: str) -> list[Passkey]:
        """The keys of the hub's own page under this name."""
        return [key for key in self.all() if key.rp_id == rp_id and not key.person]

    def _find(self, key_id: str, reply: InboundReply) -> Passkey:
        """Returns the key that signed. A fleet's key signs for its person alone, so that one signature is one vote, and
        nothing else signs for a person of the fleet: the server would say on which page it was made."""
        key = next((key for key in self.all() if key.key_id == key_id), None)
        if key is None:
            raise PasskeyRefused(_UNKNOWN, _ACCEPT if reply.channel == FLEET else "")
        if (key.person or reply.channel == FLEET) and key.person != reply.identity:
            whose = key.person or "this machine's own page"
            raise PasskeyRefused(f"This passkey belongs to {whose}, and {reply.identity} answers.")
        return key

    def _use(self, used: Passkey, count: int) -> None:
        if count != used.count:
            self._save(replace(key, count=count) if key.key_id == used.key_id else key for key in self.all())


_UNKNOWN = "This passkey is not enrolled here, or was removed."
_ACCEPT = f"To accept it, {COPY}, and run it in a terminal of this machine."
_NONE = "No passkey is enrolled for {}. Add one: atlasbridge passkey add"


def _wants(record: PromptRecord, answer: Answer) -> bool:
    return PROOF in record.prompt.constraints and agrees(record.prompt, answer)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
