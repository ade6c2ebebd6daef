-- Passkeys of people, so that a browser knows which to ask for. A machine counts only those that were accepted on it.
CREATE TABLE passkeys (
    key_id     text PRIMARY KEY,
    person     text NOT NULL REFERENCES people (name),
    name       text NOT NULL,
    origin     text NOT NULL,                                            -- of the page where it was made
    public_key text NOT NULL,
    made_at    timestamptz NOT NULL
);
CREATE INDEX passkeys_by_person ON passkeys (person, made_at);

-- Passkeys that a browser has begun to make.
CREATE TABLE passkey_attempts (
    challenge  text PRIMARY KEY,
    person     text NOT NULL REFERENCES people (name),
    made_at    timestamptz NOT NULL
);

-- The signature that came with an answer, for the machine.
ALTER TABLE decisions ADD COLUMN passkey jsonb;
