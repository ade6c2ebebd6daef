"""Ensures that only a person decides: checks whether a command comes from a program inside a session, and refuses it.

`core.ancestry` reads the ancestors of a process. The table in `core/operations.py` defines which operations need a
person.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from atlasbridge.core.ancestry import Look, Process, SessionProcesses, decide_inside_session, look_at, trace_ancestry
from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.daemon.receipts import RefusalLog
from atlasbridge.core.daemon.tcp_owner import find_peer, find_session_of, is_of_this_machine
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.peer import Peer, own_uid
from atlasbridge.core.prompt.gate import OTHER_USER, UNTRACED, refuse_inside_session
from atlasbridge.core.prompt.model import Reject
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace

LONGEST_LABEL: Final = 120
ASKERS: Final = {UNTRACED: "from a program of unknown origin", OTHER_USER: "from another user"}  # on the card
UNIX: Final = "unix:"  # prefix of a peer's address at the page's Unix socket: its pid and start time
# people are notified of one session's attempts at most once in this time; the audit log has all of them
QUIET_S: Final = 60.0


class CallerCheck:
    """`guests`: other users whose sessions use this hub. `members`: those of them who decide like the hub's own
    user."""

    def __init__(
        self,
        hub: HubParts,
        refusals: RefusalLog,
        look: Look = look_at,
        guests: Callable[[], frozenset[int]] = frozenset,
        members: Callable[[], frozenset[int]] = frozenset,
    ) -> None:
        self._hub = hub
        self._refusals = refusals
        self._look = look
        self._guests = guests
        self._members = members
        self._quiet_until: dict[str, float] = {}

    def of(self, peer: Peer | None) -> str:
        """Returns "" for a person's own command, the session of a program inside one, or the reason why it is
        unknown."""
        if peer is None:
            return UNTRACED
        line = trace_ancestry(peer.pid, self._look) if peer.pid > 0 else ()
        known = line and peer.started in (0, line[0].started)
        inside_session = decide_inside_session(line, self._near(line)) if known else UNTRACED
        return OTHER_USER if inside_session in ("", UNTRACED) and not self._decides(peer.uid) else inside_session

    def _decides(self, uid: int) -> bool:
        """Whether a program of this user is a person's, where no session is behind it."""
        return uid == own_uid() or uid in self._members()

    def whence(self, peer: Peer) -> str:
        """Returns the session inside which a question was asked, whichever user's; "" if none is visible."""
        if peer.pid <= 0:
            return ""
        line = trace_ancestry(peer.pid, self._look)
        if not line or peer.started not in (0, line[0].started):
            return UNTRACED
        others = [home for home in self._near(line) if home.host_pid != peer.pid]  # without its own other questions
        # a host is not inside its own session
        return decide_inside_session((replace(line[0], name=""), *line[1:]), others)

    async def peer_of(self, client: tuple[str, int], server: tuple[str, int]) -> Peer:
        """Returns the peer of a loopback connection that has proved that it has the key; pid 0 if it is unknown."""
        return await asyncio.to_thread(find_peer, client, server, self._all_sessions())

    async def of_connection(
        self, client: tuple[str, int], server: tuple[str, int], same_user: bool = False, forwarded: str | None = None
    ) -> str:
        """Like `of`, for a network connection. It inspects every process, so it runs in another thread.

        A relay of another user on this machine hides who uses it, so it decides nothing. A proxy that the configuration
        names reports the address for which it asks. If that address is on this machine, a tool could have sent it.
        """
        if client[0].startswith(UNIX):
            pid, _, started = client[0].removeprefix(UNIX).partition(":")
            return self.of(Peer(int(pid), own_uid(), int(started)))
        found = await asyncio.to_thread(find_session_of, client, server, self._all_sessions(), self._users())
        if found.inside_session != "":
            return UNTRACED if found.inside_session is None else found.inside_session
        if forwarded is not None and not same_user:
            return UNTRACED if is_of_this_machine(forwarded) else ""
        return "" if self._decides(found.uid) or (found.uid < 0 and not same_user) else OTHER_USER

    def mark(self, label: str, inside_session: str) -> str:
        """Adds a mark to a label from inside a session. The mark comes first, so that the label cannot hide it."""
        label = escape_controls(label, keep_lines=False)[:LONGEST_LABEL]
        if not inside_session:
            return label
        if asker := ASKERS.get(inside_session):
            return f"{asker}{': ' + label if label else ''}"
        session = self._hub.ledger.session(inside_session)
        name = f" ({escape_controls(session.label or session.tool, keep_lines=False)})" if session else ""
        return f"in session {short_id(inside_session)}{name}{': ' + label if label else ''}"

    def _users(self) -> frozenset[int]:
        return frozenset({own_uid(), *self._guests(), *(link.uid for link in self._hub.hosts.all())})

    def _near(self, line: tuple[Process, ...]) -> list[SessionProcesses]:
        """The sessions that can be related to this ancestry; usually one or none."""
        terminals = {process.tty for process in line if process.tty}
        here = [link.session_id for link in self._hub.hosts.all() if link.tty in terminals] if terminals else []
        return self._with_links(self._hub.ledger.processes([process.pid for process in line], here))

    def _all_sessions(self) -> list[SessionProcesses]:
        return self._with_links(self._hub.ledger.processes())

    def _with_links(self, sessions: list[tuple[str, int, int]]) -> list[SessionProcesses]:
        found = []
        for session_id, host_pid, tool_pid in sessions:
            link = self._hub.hosts.get(session_id)
            started = (0, 0, "") if link is None else (link.host_started, link.tool_started, link.tty)
            found.append(SessionProcesses(session_id, host_pid, tool_pid, *started))
        return found

    def refuse(self, inside_session: str, op: str, prompt_id: str = "", pid: int = 0) -> Reject:
        """Writes the attempt to the audit log, notifies people, and returns the refusal."""
        session = self._hub.ledger.session(inside_session)
        session_id = session.session_id if session else ""
        self._refusals.record_attempt(identity_of(inside_session), session_id, prompt_id, op=op, pid=pid)
        self._hub.stream.publish("self.refused", session_id=session_id, prompt_id=prompt_id, op=op, pid=pid)
        self._tell(inside_session, session, op)
        return refuse_inside_session(inside_session)

    def _tell(self, inside_session: str, session: SessionRecord | None, op: str) -> None:
        now = self._hub.clock.now()
        if now < self._quiet_until.get(inside_session, now):
            return
        self._quiet_until = {key: until for key, until in self._quiet_until.items() if until > now}
        self._quiet_until[inside_session] = now + QUIET_S
        self._hub.router.notify(_sentence(session, op))  # in every channel, whatever the session's own settings say


def _sentence(session: SessionRecord | None, op: str) -> str:
    if session is None:
        who = "A command that no person can be seen behind"
    else:
        who = f"The program in session {session.label or session.tool} ({short_id(session.session_id)})"
    return f"{who} tried to decide by itself ({_DEEDS.get(op, op)}). It was refused."


def identity_of(inside_session: str) -> str:
    return _NAMELESS.get(inside_session) or f"tool:{short_id(inside_session)}"


_NAMELESS: Final = {UNTRACED: "tool:unknown", OTHER_USER: "tool:of-another-user"}
_DEEDS: Final = {
    "reply": "answer a prompt",
    "kill": "end a session",
    "reload": "reload the configuration",
    "stop": "stop the hub",
    "page": "let a browser in",
    "login": "log in to the page",
}
