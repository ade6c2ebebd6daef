ALTER TABLE prompts ADD COLUMN decided_value TEXT NOT NULL DEFAULT '';
ALTER TABLE prompts ADD COLUMN decided_from TEXT NOT NULL DEFAULT '';

CREATE TABLE requests (
    key       TEXT PRIMARY KEY,                 -- the sender's identity and the key of its choice
    prompt_id TEXT NOT NULL,
    reason    TEXT,                             -- why it was refused; NULL: it decided the prompt
    sentence  TEXT NOT NULL DEFAULT '',
    at        TEXT NOT NULL
);
