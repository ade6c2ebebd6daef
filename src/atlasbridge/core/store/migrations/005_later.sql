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
