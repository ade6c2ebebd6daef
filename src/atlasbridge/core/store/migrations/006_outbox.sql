CREATE TABLE outbox (
    seq  INTEGER PRIMARY KEY AUTOINCREMENT,    -- a number is never used twice
    kind TEXT NOT NULL CHECK (kind IN ('prompt', 'session')),
    id   TEXT NOT NULL,                        -- what it says now is read when it is sent: only the newest counts
    UNIQUE (kind, id)
);

CREATE TRIGGER a_raised_prompt_goes_to_the_desk AFTER INSERT ON prompts
WHEN EXISTS (SELECT 1 FROM notes WHERE key = 'desk.epoch' AND value <> '')
BEGIN
    INSERT INTO outbox (kind, id) VALUES ('prompt', NEW.id);
END;

CREATE TRIGGER a_moved_prompt_goes_to_the_desk AFTER UPDATE OF status ON prompts
WHEN NEW.status NOT IN ('routed', 'awaiting_reply')
 AND EXISTS (SELECT 1 FROM notes WHERE key = 'desk.epoch' AND value <> '')
BEGIN
    DELETE FROM outbox WHERE kind = 'prompt' AND id = NEW.id;
    INSERT INTO outbox (kind, id) VALUES ('prompt', NEW.id);
END;

CREATE TRIGGER a_vote_goes_to_the_desk AFTER INSERT ON votes
WHEN EXISTS (SELECT 1 FROM notes WHERE key = 'desk.epoch' AND value <> '')
BEGIN
    DELETE FROM outbox WHERE kind = 'prompt' AND id = NEW.prompt_id;
    INSERT INTO outbox (kind, id) VALUES ('prompt', NEW.prompt_id);
END;

CREATE TRIGGER a_started_session_goes_to_the_desk AFTER INSERT ON sessions
WHEN EXISTS (SELECT 1 FROM notes WHERE key = 'desk.epoch' AND value <> '')
BEGIN
    INSERT INTO outbox (kind, id) VALUES ('session', NEW.id);
END;

CREATE TRIGGER a_changed_session_goes_to_the_desk AFTER UPDATE OF status, label, cwd ON sessions
WHEN (OLD.status <> NEW.status OR OLD.label <> NEW.label OR OLD.cwd <> NEW.cwd)
 AND EXISTS (SELECT 1 FROM notes WHERE key = 'desk.epoch' AND value <> '')
BEGIN
    DELETE FROM outbox WHERE kind = 'session' AND id = NEW.id;
    INSERT INTO outbox (kind, id) VALUES ('session', NEW.id);
END;
