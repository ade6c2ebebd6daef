"""The fleet server's table of operations: those of a hub that it answers over its own rows, and those that only a fleet
has.  Its HTTP routes, its OpenAPI document and its page for administration are made of it.
"""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal

from atlasbridge.core.operations import (
    AuditEntry,
    Event,
    Grade,
    HubOperations,
    Limit,
    NewToken,
    Operation,
    Prompt,
    ShortText,
    Token,
    TokenName,
    operation,
)
from atlasbridge.core.schema import Is
from atlasbridge.core.values import frozen

Name = Annotated[str, Is(least=1, most=60)]
MachineName = Annotated[str, Is("its name or id", least=1, most=120)]
Pattern = Annotated[str, Is("* is any text", least=1, most=400)]
Role = Literal["admin", "member"]


@frozen
class FleetPrompts:
    prompts: tuple[Prompt, ...]
    total: Annotated[int, Is("how many there are; a page shows fewer")]
    now: str


@frozen
class Machine:
    machine_id: str
    name: str
    connected: bool
    silent: bool
    seen_at: str | None
    version: str
    ephemeral: bool
    open_prompts: int
    rules: Annotated[str, Is("the digest of the rules that it uses")]
    rules_fault: str
    log_fault: Annotated[str, Is("the fault of its audit log, if there is one")]
    held: Annotated[str, Is("restored or cloned: it waits for a person's decision")]
    notice: str


@frozen
class Decision:
    decision_id: str
    machine: str
    prompt_id: str
    folder: str
    excerpt: str | None
    person: str
    value: str
    made_at: str
    settled_at: str | None
    ok: bool | None
    stage: str
    message: str


@frozen
class Notice:
    notice_id: int
    machine: str
    at: str
    message: str


@frozen
class FleetPasskey:
    """A passkey for the fleet's page."""

    key_id: str
    name: str
    rp_id: str
    created_at: str
    by: str
    accept: Annotated[str, Is("the command that accepts it on a machine")]


@frozen
class Login:
    """A browser that is logged in."""

    login_id: str
    person: str
    name: Annotated[str, Is("the device, as it calls itself")]
    made_at: str
    seen_at: str | None
    until: str
    this: Annotated[bool, Is("the one that asks")]


@frozen
class Right:
    holder: Annotated[str, Is("a person, or @team")]
    machine: str
    folder: str
    may: str


@frozen
class Person:
    name: str
    role: str
    identities: tuple[str, ...]
    teams: tuple[str, ...]
    quiet: tuple[str, ...]
    zone: str
    rights: tuple[Right, ...]


@frozen
class Invitation:
    invitation_id: str
    by: str
    made_at: str
    until: str
    name: str
    ephemeral: bool
    uses_left: int


@frozen
class TeamRules:
    digest: str
    text: str
    by: str


class FleetOperations:
    """Prompts and sessions are called MACHINE.ID here; each person gets only what they are allowed to see."""

    # prompts, sessions and answers

    @operation("GET /prompts")
    def prompts(
        self,
        machine: Annotated[str, Is("only of this machine", most=120)] = "",
        folder: Annotated[str, Is("only in folders that begin so", most=4096)] = "",
        label: Annotated[str, Is(most=120)] = "",
        tool: Annotated[str, Is(most=120)] = "",
        q: Annotated[str, Is("words in the question, the machine, the folder or the label", most=200)] = "",
        limit: Annotated[int, Is("how many at most", least=1, most=200)] = 50,
        offset: Annotated[int, Is(least=0, most=10_000_000)] = 0,
    ) -> FleetPrompts:
        """Open prompts of all machines, oldest first."""

    prompt = HubOperations.prompt
    reply = HubOperations.reply
    passkey_challenge = HubOperations.passkey_challenge
    outcome = HubOperations.outcome
    sessions = HubOperations.sessions
    session = HubOperations.session
    screen_stream = HubOperations.screen_stream

    @operation("GET /events", page=True, name="fleet.events")
    def event_stream(self) -> AsyncIterator[Event]:
        """Says that something has changed: read the lists again."""

    @operation("GET /decisions", name="fleet.decisions")
    def decisions(
        self,
        person: Annotated[str, Is("only of this person", most=60)] = "",
        before: Annotated[str, Is("only those made before this moment", most=40)] = "",
        before_id: Annotated[
            str, Is("and, of those made at this moment, the ones listed after this one", most=60)
        ] = "",
        limit: Annotated[int, Is("how many at most", least=1, most=200)] = 50,
    ) -> Annotated[tuple[Decision, ...], Is(key="decisions")]:
        """The decisions of the fleet, newest first."""

    @operation("GET /notices", name="fleet.notices")
    def notices(self) -> Annotated[tuple[Notice, ...], Is(key="notices")]:
        """Notices that machines sent, newest first."""

    # the caller

    login = HubOperations.login
    logout = HubOperations.logout
    me = HubOperations.me
    health = HubOperations.health
    push_key = HubOperations.push_key
    subscribe = HubOperations.subscribe
    unsubscribe = HubOperations.unsubscribe

    @operation("GET /logins", name="fleet.logins")
    def logins(self) -> Annotated[tuple[Login, ...], Is(key="logins")]:
        """Browsers that are logged in: one's own, or everybody's for an administrator."""

    @operation("DELETE /logins/{login_id}", scope="answer", name="fleet.end_login")
    def end_login(self, login_id: ShortText) -> Annotated[bool, Is(key="changed")]:
        """End one login."""

    @operation("GET /tokens", name="fleet.tokens")
    def list_tokens(self) -> Annotated[tuple[Token, ...], Is(key="tokens")]:
        """One's own API tokens, or everybody's for an administrator."""

    @operation("POST /tokens", scope="answer", name="fleet.create_token")
    def create_token(self, name: TokenName, scope: Grade = "read") -> NewToken:
        """Create a token that is valid for a year; its secret is shown once."""

    @operation("DELETE /tokens/{token_id}", scope="answer", name="fleet.revoke_token")
    def revoke_token(self, token_id: ShortText) -> Annotated[bool, Is(key="revoked")]:
        """Revoke a token."""

    @operation("GET /passkeys", page=True, name="fleet.passkeys")
    def list_passkeys(self) -> Annotated[tuple[FleetPasskey, ...], Is(key="passkeys")]:
        """One's own passkeys for this page."""

    begin_passkey = HubOperations.begin_passkey
    add_passkey = HubOperations.add_passkey
    remove_passkey = HubOperations.remove_passkey

    # machines

    @operation("GET /machines", name="fleet.machines")
    def machines(self) -> Annotated[tuple[Machine, ...], Is(key="machines")]:
        """The machines of which the caller can see something."""

    @operation("DELETE /machines/{machine}", scope="admin", name="fleet.revoke_machine")
    def revoke_machine(self, machine: MachineName) -> Annotated[bool, Is(key="changed")]:
        """Remove a machine; its key is no longer valid."""

    @operation("POST /machines/{machine}/accept-restore", scope="admin", name="fleet.accept_restore")
    def accept_restore(self, machine: MachineName) -> Annotated[bool, Is(key="changed")]:
        """Confirm that a machine was restored to an earlier state on purpose."""

    @operation("PUT /machines/{machine}/screens", scope="admin", name="fleet.screens")
    def allow_screens(self, machine: MachineName, allowed: bool) -> Annotated[bool, Is(key="changed")]:
        """Allow or forbid people to look at a machine's screens."""

    @operation("GET /invitations", scope="admin", name="fleet.invitations")
    def invitations(self) -> Annotated[tuple[Invitation, ...], Is(key="invitations")]:
        """Invitations that can still be used."""

    @operation("POST /invitations", scope="admin", name="fleet.invite")
    def invite(
        self,
        name: Annotated[str, Is("valid for a machine of this name alone", most=120)] = "",
        ephemeral: Annotated[bool, Is("for containers and jobs: removed once silent")] = False,
        minutes: Annotated[float, Is(least=1, most=43_200)] = 60.0,
        uses: Annotated[int, Is("how many machines can use it", least=1, most=10_000)] = 1,
    ) -> Annotated[str, Is("for: atlasbridge fleet join", key="address")]:
        """Make the address with which a machine joins."""

    @operation("DELETE /invitations/{invitation_id}", scope="admin", name="fleet.revoke_invitation")
    def revoke_invitation(self, invitation_id: ShortText) -> Annotated[bool, Is(key="changed")]:
        """Revoke an invitation."""

    # people; a name can contain any character, so it is sent in the body

    @operation("GET /people", scope="admin", name="fleet.people")
    def people(self) -> Annotated[tuple[Person, ...], Is(key="people")]:
        """People, their teams, and what they are allowed to see and answer."""

    @operation("POST /people", scope="admin", name="fleet.add_person")
    def add_person(self, name: Name, role: Role = "member") -> Annotated[bool, Is(key="changed")]:
        """Add a person, or change their role."""

    @operation("POST /people/remove", scope="admin", name="fleet.remove_person")
    def remove_person(self, name: Name) -> Annotated[bool, Is(key="changed")]:
        """Revoke a person's access, and log them out everywhere."""

    @operation("POST /people/link", scope="admin", name="fleet.link")
    def make_link(self, name: Name) -> Annotated[str, Is("valid once, for a quarter of an hour", key="url")]:
        """Make a link with which a person logs in."""

    @operation("POST /teams", scope="admin", name="fleet.join_team")
    def join_team(self, team: Name, person: Name) -> Annotated[bool, Is(key="changed")]:
        """Add a person to a team."""

    @operation("POST /teams/remove", scope="admin", name="fleet.leave_team")
    def leave_team(self, team: Name, person: Name) -> Annotated[bool, Is(key="changed")]:
        """Remove a person from a team."""

    @operation("POST /rights", scope="admin", name="fleet.allow")
    def allow(
        self,
        holder: Annotated[str, Is("a person, or @team", least=1, most=61)],
        machine: Pattern = "*",
        folder: Pattern = "*",
        may: Literal["see", "answer"] = "answer",
    ) -> Annotated[bool, Is(key="changed")]:
        """Allow somebody to see or answer for machines and folders."""

    @operation("POST /rights/remove", scope="admin", name="fleet.deny")
    def deny(
        self,
        holder: Annotated[str, Is("a person, or @team", least=1, most=61)],
        machine: Pattern = "*",
        folder: Pattern = "*",
    ) -> Annotated[bool, Is(key="changed")]:
        """Remove a permission; give the same arguments as for allow."""

    # rules and the log

    @operation("GET /rules", scope="admin", name="fleet.rules")
    def team_rules(self) -> TeamRules:
        """The rules for all machines."""

    @operation("PUT /rules", scope="admin", name="fleet.set_rules")
    def set_team_rules(self, text: Annotated[str, Is("as policy.toml", most=60_000)]) -> TeamRules:
        """Send rules to all machines."""

    @operation("GET /audit", scope="admin", name="fleet.audit")
    def audit(
        self, limit: Limit = 100, before: Annotated[int, Is("only entries before this seq", least=0, most=2**53)] = 0
    ) -> Annotated[tuple[AuditEntry, ...], Is(key="entries")]:
        """The server's audit log, newest first."""


OFFERED: Final[tuple[Operation[..., Any], ...]] = tuple(
    one for one in vars(FleetOperations).values() if isinstance(one, Operation)
)
