"""Publishes the head of the audit log to places that the hub's user cannot change: the system journal and a chat.

If somebody restores an older store and log, a head that one of these places has seen reveals it. The fleet server keeps
heads of its own. The audit log itself defines what a head is and whether a log contains it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from atlasbridge.core.audit.chain import Head
from atlasbridge.core.clock import Clock
from atlasbridge.core.daemon.rules import HubRules
from atlasbridge.core.operations import SeenHead
from atlasbridge.core.routing.router import PromptRouter
from atlasbridge.core.scheduler.service import Scheduler
from atlasbridge.core.store.ledger import Ledger

log = logging.getLogger(__name__)
JOURNAL: Final = "/run/systemd/journal/socket"
FIELD: Final = "ATLASBRIDGE_AUDIT_HEAD"
HOME_FIELD: Final = "ATLASBRIDGE_HOME"
# the hash of the first entry, which distinguishes this log from one that was started again
LOG_FIELD: Final = "ATLASBRIDGE_LOG"
EVERY_S: Final = 3600.0
CHAT_EVERY_S: Final = 86_400.0
RULES_NOTE: Final = "rules.digest"
_PATIENCE_S = 20.0


def write_journal(fields: dict[str, str], place: str = JOURNAL) -> bool:
    """Writes one entry with the journal's native protocol. Returns False if there is no journal, or it does not accept
    the entry."""
    if not hasattr(socket, "AF_UNIX"):  # Windows
        return False
    lines = "".join(f"{name}={value}\n" for name, value in fields.items())
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(lines.encode(), place)
    except OSError:
        return False
    return True


def read_journal(home: Path, uid: int, program: str = "journalctl") -> list[SeenHead]:
    """Reads the heads that the journal has received from this home's hub. Empty if there is no readable journal."""
    if shutil.which(program) is None:
        return []
    words = [program, "--quiet", "--no-pager", "--output=json", f"{HOME_FIELD}={home}", f"_UID={uid}"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE_S, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [seen for line in done.stdout.splitlines() if (seen := _seen_in(line))]


def _seen_in(line: str) -> SeenHead | None:
    try:
        entry = json.loads(line)
        head = parse_head(str(entry.get(FIELD, "")))
        return SeenHead(*head, str(entry.get(LOG_FIELD, ""))) if head else None
    except (ValueError, AttributeError):
        return None


def parse_head(text: str) -> Head | None:
    """Parses "COUNT:HASH", the format of receipts and `status`. Returns None for anything else."""
    count, _, digest = text.strip().partition(":")
    return Head(int(count), digest) if count.isdecimal() and digest.startswith("sha256:") else None


def digest_files(paths: Iterable[Path]) -> dict[str, str]:
    """Returns the digest of each file by its name; "" if the file is missing or unreadable."""
    found = {}
    for path in paths:
        try:
            found[path.stem] = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            found[path.stem] = ""
    return found


class AuditHeads:
    def __init__(self, home: Path, ledger: Ledger, clock: Clock, scheduler: Scheduler, router: PromptRouter) -> None:
        self._home = home
        self._ledger = ledger
        self._clock = clock
        self._scheduler = scheduler
        self._router = router
        self.journal = JOURNAL
        self.chats: tuple[str, ...] = ()  # channels that receive the head once a day
        self._last = Head(0, "")
        self._told_at = -CHAT_EVERY_S
        self._told = Head(0, "")

    def start(self) -> None:
        """Publishes the head now and then every hour."""
        self.send()
        self._scheduler.set("audit-head", self._clock.now() + EVERY_S, self.start)

    def send(self) -> None:
        """Publishes the head at once, for example after a signed decision. Does nothing if the head has not changed."""
        head = self._ledger.journal.audit_head()
        if head != self._last:
            self._last = head
            text = f"{head.entries}:{head.hash}"
            fields = {"MESSAGE": f"AtlasBridge audit head {text}", "PRIORITY": "6", "SYSLOG_IDENTIFIER": "atlasbridge"}
            first = self._ledger.audit_entries(limit=1)
            which = {HOME_FIELD: str(self._home), LOG_FIELD: str(first[0]["hash"]) if first else ""}
            write_journal({**fields, FIELD: text, **which}, self.journal)
        if self.chats and head != self._told and self._clock.now() - self._told_at >= CHAT_EVERY_S:
            self._told, self._told_at = head, self._clock.now()
            for name in self.chats:
                self._router.tell(name, f"Audit log: {head.entries} entries, head {head.entries}:{head.hash}")

    def noted_files(self) -> dict[str, str]:
        """The digests of the configuration and the rules in use, for HUB_START and CONFIG_RELOADED."""
        return digest_files((self._home / "config.toml", self._home / "policy.toml"))

    def compare_rules(self, rules: HubRules) -> None:
        """Notifies everybody if the rules differ from the last time, whatever changed them."""
        names = sorted(f"{rule.name} {rule.digest}" for rule in rules.policy.rules)
        digest = hashlib.sha256("\n".join(names).encode()).hexdigest()
        before = self._ledger.recall(RULES_NOTE)
        if digest == before:
            return
        self._ledger.remember(RULES_NOTE, digest)
        if before or names:
            count = f"{len(names)} rule{'' if len(names) == 1 else 's'}"
            self._router.notify(f"The rules that answer for you have changed ({count} now): atlasbridge policy check")
