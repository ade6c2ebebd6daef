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
-- every reply asks which sessions its sender's process can belong to; there can be a thousand
CREATE INDEX sessions_by_host ON sessions (host_pid);
CREATE INDEX sessions_by_tool ON sessions (pid);

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
    decided_by TEXT,
    decided_value TEXT NOT NULL DEFAULT '',    -- the label of the answer
    decided_from  TEXT NOT NULL DEFAULT ''     -- the device or chat of the decider
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

CREATE TABLE requests (
    key       TEXT PRIMARY KEY,                 -- the sender's identity and the key of its choice
    prompt_id TEXT NOT NULL,
    reason    TEXT,                             -- why it was refused; NULL: it decided the prompt
    sentence  TEXT NOT NULL DEFAULT '',
    at        TEXT NOT NULL
);

CREATE TABLE grants (
    id         TEXT PRIMARY KEY,
    shape      TEXT NOT NULL,                   -- JSON: shapes of commands, a path or a host
    tool       TEXT NOT NULL,
    session_id TEXT NOT NULL DEFAULT '',        -- '': every session of that tool in that folder
    folder     TEXT NOT NULL DEFAULT '',
    deadline   REAL,                            -- on the steady clock of its boot; NULL: until that ends
    uses_left  INTEGER CHECK (uses_left >= 0),  -- NULL: any number
    by         TEXT NOT NULL,
    created_at TEXT NOT NULL,
    boot_id    TEXT NOT NULL,
    prompt_id  TEXT NOT NULL,                   -- the question it was given for
    revoked_at TEXT
);

CREATE TABLE votes (
    prompt_id TEXT NOT NULL REFERENCES prompts (id),
    person    TEXT NOT NULL,
    identity  TEXT NOT NULL,
    answer    TEXT NOT NULL,
    at        TEXT NOT NULL,
    PRIMARY KEY (prompt_id, person)
);

CREATE TABLE notices (
    prompt_id TEXT    NOT NULL REFERENCES prompts (id),
    channel   TEXT    NOT NULL,
    step      INTEGER NOT NULL,                -- of the prompt's escalation policy
    heard     TEXT    NOT NULL DEFAULT '[]',   -- JSON list: the people for whom it made a sound
    at        TEXT    NOT NULL,
    PRIMARY KEY (prompt_id, channel, step)
);

CREATE INDEX notices_by_time ON notices (at);

CREATE TABLE later (
    id         TEXT    PRIMARY KEY,
    prompt_id  TEXT    NOT NULL REFERENCES prompts (id),
    kind       TEXT    NOT NULL CHECK (kind IN ('answer', 'snooze')),
    value      TEXT    NOT NULL DEFAULT '',
    as_text    INTEGER NOT NULL DEFAULT 0,
    due_at     TEXT    NOT NULL,
    channel    TEXT    NOT NULL,
    identity   TEXT    NOT NULL,
    place      TEXT    NOT NULL DEFAULT '',
    created_at TEXT    NOT NULL,
    ended_at   TEXT,                           -- NULL: its moment is still to come
    outcome    TEXT    NOT NULL DEFAULT ''
);

CREATE INDEX later_by_prompt ON later (prompt_id);
CREATE UNIQUE INDEX one_later_answer_per_prompt ON later (prompt_id) WHERE kind = 'answer' AND ended_at IS NULL;

CREATE TABLE outbox (
    seq  INTEGER PRIMARY KEY AUTOINCREMENT,    -- a number is never used twice
    kind TEXT NOT NULL CHECK (kind IN ('prompt', 'session')),
    id   TEXT NOT NULL,                        -- what it says now is read when it is sent: only the newest counts
    UNIQUE (kind, id)
);

CREATE TRIGGER a_raised_prompt_goes_to_the_fleet AFTER INSERT ON prompts
WHEN EXISTS (SELECT 1 FROM notes WHERE key = 'fleet.epoch' AND value <> '')
BEGIN
    INSERT INTO outbox (kind, id) VALUES ('prompt', NEW.id);
END;

CREATE TRIGGER a_moved_prompt_goes_to_the_fleet AFTER UPDATE OF status ON prompts
WHEN NEW.status NOT IN ('routed', 'awaiting_reply')
 AND EXISTS (SELECT 1 FROM notes WHERE key = 'fleet.epoch' AND value <> '')
BEGIN
    DELETE FROM outbox WHERE kind = 'prompt' AND id = NEW.id;
    INSERT INTO outbox (kind, id) VALUES ('prompt', NEW.id);
END;

CREATE TRIGGER a_vote_goes_to_the_fleet AFTER INSERT ON votes
WHEN EXISTS (SELECT 1 FROM notes WHERE key = 'fleet.epoch' AND value <> '')
BEGIN
    DELETE FROM outbox WHERE kind = 'prompt' AND id = NEW.prompt_id;
    INSERT INTO outbox (kind, id) VALUES ('prompt', NEW.prompt_id);
END;

CREATE TRIGGER a_started_session_goes_to_the_fleet AFTER INSERT ON sessions
WHEN EXISTS (SELECT 1 FROM notes WHERE key = 'fleet.epoch' AND value <> '')
BEGIN
    INSERT INTO outbox (kind, id) VALUES ('session', NEW.id);
END;

CREATE TRIGGER a_changed_session_goes_to_the_fleet AFTER UPDATE OF status, label, cwd ON sessions
WHEN (OLD.status <> NEW.status OR OLD.label <> NEW.label OR OLD.cwd <> NEW.cwd)
 AND EXISTS (SELECT 1 FROM notes WHERE key = 'fleet.epoch' AND value <> '')
BEGIN
    DELETE FROM outbox WHERE kind = 'session' AND id = NEW.id;
    INSERT INTO outbox (kind, id) VALUES ('session', NEW.id);
END;

-- what a session that has ended leaves behind: its last screen and the lines above it, redacted
CREATE TABLE last_output (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    at         TEXT NOT NULL,
    body       BLOB NOT NULL                   -- JSON, packed by zlib
);
