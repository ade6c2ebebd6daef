"""A session in the form of the specification, for channels that are written from it alone: its three-part identity, and
where it runs."""

from __future__ import annotations

from dataclasses import dataclass

from atlasbridge.core.session.model import SessionRecord


@dataclass
class Session:
    session_id: str
    tool: str
    pid: int
    cwd: str = ""
    label: str = ""

    @property
    def id(self) -> str:
        return self.session_id

    @classmethod
    def of(cls, record: SessionRecord) -> Session:
        return cls(record.session_id, record.tool, record.pid, record.cwd, record.label)
