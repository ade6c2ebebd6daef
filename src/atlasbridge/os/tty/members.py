"""The processes of a Linux terminal's foreground group, and what the threads of each wait for.

Says what is there; what it means for a person is decided in `linux`.
"""

from __future__ import annotations

from collections.abc import Iterator

from atlasbridge.core.values import field, mutable
from atlasbridge.os.tty import procfs, sockdiag
from atlasbridge.os.tty.procfs import Process
from atlasbridge.os.tty.waits import Line, Wait, classify


@mutable
class Member:
    """One process of the foreground group, and what its threads wait for (the main thread first)."""

    process: Process
    waits: list[Wait] = field(default_factory=list)
    denied: bool = False

    @property
    def reads_in_main(self) -> bool:
        return bool(self.waits) and self.waits[0].reads

    @property
    def attends(self) -> bool:
        return any(wait.reads or wait.watches for wait in self.waits)

    @property
    def only_the_terminal(self) -> bool:
        """No thread waits for anything but the terminal, a wake-up of the program's own, or another thread."""
        attending = [wait for wait in self.waits if wait.reads or wait.watches]
        rest = [wait for wait in self.waits if not (wait.reads or wait.watches)]
        reads = any(wait.reads for wait in attending)
        if any(wait.timeout or wait.others for wait in attending):
            return False
        helpers = rest if self.waits[0] in attending else rest[1:]
        main_idle = self.waits[0] in attending or self.waits[0].idle
        # A runtime's own threads doze with timeouts beside a blocked read; beside a poll they may draw.
        return main_idle and all(wait.idle or (reads and not wait.others) for wait in helpers)

    @property
    def timer(self) -> float:
        """After how many seconds it wakes by itself; 0: never."""
        return max((wait.timeout for wait in self.waits), default=0.0)

    @property
    def serves_others(self) -> bool:
        """Its work comes by itself: from callers, or from files that change."""
        others = {other for wait in self.waits for other in wait.others}
        return any("inotify" in other for other in others) or sockdiag.listens(map(sockdiag.socket_inode, others))

    @property
    def relays(self) -> bool:
        """A server without a terminal of its own: all it does with one is to relay."""
        return self.process.terminal == 0


def group_members(group: int, child: int) -> Iterator[Process]:
    """The living processes of a group: its leader first, then the child's family, then, if none is there, all."""
    if group <= 0:
        return
    leader = procfs.read_process(group)
    found = leader is not None and leader.state not in "ZX" and leader.group == group
    if found and leader is not None:
        yield leader
    first = procfs.read_process(child)
    family = [first] if first is not None and first.state not in "ZX" else []
    for process in [*family, *procfs.descendants(child)]:
        if process.group == group and process.pid != group:
            found = True
            yield process
    if not found:
        yield from (process for process in procfs.every_process() if process.group == group)


def examine(process: Process, line: Line) -> Member:
    member = Member(process)
    if process.state in "Tt":
        return member
    try:
        for tid in procfs.threads(process.pid):
            member.waits.append(classify(process, tid, line))
            if member.reads_in_main:
                break
    except PermissionError:
        member.denied = True
    return member
