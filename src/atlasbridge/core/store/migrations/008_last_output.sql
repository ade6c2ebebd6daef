-- what a session that has ended leaves behind: its last screen and the lines above it, redacted
CREATE TABLE last_output (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    at         TEXT NOT NULL,
    body       BLOB NOT NULL                   -- JSON, packed by zlib
);
