-- every reply asks which sessions its sender's process may belong to; there may be a thousand
CREATE INDEX sessions_by_host ON sessions (host_pid);
CREATE INDEX sessions_by_tool ON sessions (pid);
