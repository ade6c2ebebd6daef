CREATE TABLE notices (
    prompt_id TEXT    NOT NULL REFERENCES prompts (id),
    channel   TEXT    NOT NULL,
    step      INTEGER NOT NULL,                -- of the prompt's ladder
    heard     TEXT    NOT NULL DEFAULT '[]',   -- JSON list: the people for whom it made a sound
    at        TEXT    NOT NULL,
    PRIMARY KEY (prompt_id, channel, step)
);

CREATE INDEX notices_by_time ON notices (at);
