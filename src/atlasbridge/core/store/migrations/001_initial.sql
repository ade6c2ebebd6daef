CREATE TABLE schema_version (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at TEXT NOT NULL
);

CREATE TABLE sessions (
    id         TEXT    PRIMARY KEY,
    tool       TEXT    NOT NULL,
    pid        INTEGER NOT NULL,
    host_pid   INTEGER NOT NULL,
    command    TEXT    NOT NULL,               -- JSON list
    cwd        TEXT    NOT NULL,
    label      TEXT    NOT NULL DEFAULT '',
    attached   INTEGER NOT NULL DEFAULT 0,
    rows       INTEGER NOT NULL DEFAULT 24,
    cols       INTEGER NOT NULL DEFAULT 80,
    channels   TEXT,                           -- JSON list; NULL: all that are configured
    boot_id    TEXT    NOT NULL,
    started_at TEXT    NOT NULL,
    ended_at   TEXT,
    exit_code  INTEGER,
    status     TEXT    NOT NULL DEFAULT 'active'
                       CHECK (status IN ('active', 'completed', 'crashed', 'terminated'))
);

CREATE INDEX sessions_by_status ON sessions (status, started_at);

CREATE TABLE prompts (
    id         TEXT    PRIMARY KEY,
    session_id TEXT    NOT NULL REFERENCES sessions (id),
    type       TEXT    NOT NULL,
    confidence TEXT    NOT NULL,
    excerpt    TEXT    NOT NULL,
    body       TEXT    NOT NULL,               -- the whole prompt as JSON, redacted
    raw        BLOB,                           -- the bytes that drew it; kept only where the owner asked for it
    status     TEXT    NOT NULL DEFAULT 'created'
                       CHECK (status IN ('created', 'routed', 'awaiting_reply', 'reply_received', 'injected',
                                         'resolved', 'expired', 'canceled', 'failed', 'withdrawn')),
    reason     TEXT    NOT NULL DEFAULT '',    -- why it ended
    nonce      TEXT    NOT NULL,
    nonce_used INTEGER NOT NULL DEFAULT 0,
    boot_id    TEXT    NOT NULL,
    deadline   REAL    NOT NULL,               -- on the steady clock of that boot
    created_at TEXT    NOT NULL,
    expires_at TEXT    NOT NULL,               -- for people; the guard is the deadline
    updated_at TEXT    NOT NULL,
    decided_at TEXT,
    decided_by TEXT
);

CREATE UNIQUE INDEX one_open_prompt_per_session ON prompts (session_id)
    WHERE status IN ('created', 'routed', 'awaiting_reply');
CREATE INDEX prompts_by_session ON prompts (session_id);
CREATE INDEX prompts_by_status ON prompts (status);

CREATE TABLE replies (
    id          TEXT    PRIMARY KEY,
    prompt_id   TEXT    NOT NULL UNIQUE REFERENCES prompts (id),   -- one answer for one prompt, for ever
    session_id  TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    value       TEXT,                          -- NULL: a secret, never written
    source      TEXT    NOT NULL,              -- operator, timeout_default, ...
    identity    TEXT    NOT NULL,
    received_at TEXT    NOT NULL,
    injected_at TEXT                           -- NULL: not known to be typed
);

CREATE TABLE deliveries (
    prompt_id  TEXT NOT NULL REFERENCES prompts (id),
    channel    TEXT NOT NULL,
    message_id TEXT NOT NULL,
    recipient  TEXT NOT NULL DEFAULT '',
    sent_at    TEXT NOT NULL,
    PRIMARY KEY (channel, message_id, prompt_id)
);

CREATE INDEX deliveries_by_prompt ON deliveries (prompt_id, channel);

CREATE TABLE inbox (
    channel     TEXT NOT NULL,
    update_id   TEXT NOT NULL,
    payload     TEXT NOT NULL,
    received_at TEXT NOT NULL,
    PRIMARY KEY (channel, update_id)
);

CREATE TABLE notes (
    key        TEXT PRIMARY KEY,
    value      TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE TABLE audit_events (
    seq        INTEGER PRIMARY KEY,
    event      TEXT NOT NULL,
    session_id TEXT,
    prompt_id  TEXT,
    entry      TEXT NOT NULL                   -- the very line of audit.log; the columns before it are for searching
);

CREATE INDEX audit_events_by_session ON audit_events (session_id);
CREATE INDEX audit_events_by_prompt ON audit_events (prompt_id);

CREATE TRIGGER audit_events_are_never_changed BEFORE UPDATE ON audit_events
BEGIN
    SELECT raise(ABORT, 'audit entries are never changed');
END;

CREATE TRIGGER audit_events_are_never_deleted BEFORE DELETE ON audit_events
BEGIN
    SELECT raise(ABORT, 'audit entries are never deleted');
END;

CREATE TABLE audit_head (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    count    INTEGER NOT NULL,
    hash     TEXT    NOT NULL,
    exported INTEGER NOT NULL DEFAULT 0        -- so many entries are certainly in audit.log and on disk
);

INSERT INTO audit_head (id, count, hash) VALUES (1, 0, 'genesis');
