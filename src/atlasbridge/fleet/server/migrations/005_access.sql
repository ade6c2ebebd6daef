-- Logins are listed and ended one by one; a program has a token, which is a login with a scope.
ALTER TABLE logins DROP CONSTRAINT logins_kind_check;
ALTER TABLE logins ADD CONSTRAINT logins_kind_check CHECK (kind IN ('link', 'browser', 'token'));
ALTER TABLE logins ADD COLUMN id text NOT NULL DEFAULT substr(md5(random()::text || clock_timestamp()::text), 1, 12);
ALTER TABLE logins ADD COLUMN name text NOT NULL DEFAULT '';             -- the token's, or the device as it calls itself
ALTER TABLE logins ADD COLUMN scope text NOT NULL DEFAULT 'admin' CHECK (scope IN ('read', 'ask', 'answer', 'admin'));
ALTER TABLE logins ADD COLUMN seen_at timestamptz;
CREATE UNIQUE INDEX logins_by_id ON logins (id);
CREATE UNIQUE INDEX tokens_by_name ON logins (person, name) WHERE kind = 'token';

-- Logins with OpenID Connect that have begun and not come back yet.
CREATE TABLE oidc_attempts (
    state_hash text PRIMARY KEY,
    nonce      text NOT NULL,
    verifier   text NOT NULL,
    made_at    timestamptz NOT NULL
);
