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
