CREATE TABLE desk_identity (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    private_key text NOT NULL,
    public_key  text NOT NULL
);

CREATE TABLE machines (
    id           text PRIMARY KEY,
    name         text NOT NULL,
    public_key   text NOT NULL UNIQUE,
    ephemeral    boolean NOT NULL DEFAULT false,
    screens      boolean NOT NULL DEFAULT true,      -- what the machine itself allows
    screens_here boolean NOT NULL DEFAULT true,      -- what the desk allows
    joined_at    timestamptz NOT NULL,
    invited_by   text NOT NULL DEFAULT '',
    seen_at      timestamptz,
    gone_at      timestamptz,
    gone_why     text NOT NULL DEFAULT '',           -- 'left', 'revoked', 'ephemeral'
    epoch        text NOT NULL DEFAULT '',           -- its outbox; another one numbers anew
    acked        bigint NOT NULL DEFAULT 0,
    generation   bigint NOT NULL DEFAULT 0,          -- of its link: an older one may not write any more
    connected_to text NOT NULL DEFAULT '',           -- the desk process that has its link
    version      text NOT NULL DEFAULT '',
    policy       text NOT NULL DEFAULT '',           -- the digest of the rules it uses
    policy_fault text NOT NULL DEFAULT '',
    head_count   bigint NOT NULL DEFAULT 0,          -- the newest head of its audit log
    head_hash    text NOT NULL DEFAULT 'genesis',
    proved_count bigint NOT NULL DEFAULT 0,          -- so far its chain was followed, entry by entry
    proved_hash  text NOT NULL DEFAULT 'genesis',
    proved_at    timestamptz,
    log_fault    text NOT NULL DEFAULT ''            -- why its audit log is not what it was
);

CREATE UNIQUE INDEX machines_by_name ON machines (name) WHERE gone_at IS NULL;

CREATE TABLE heads (
    machine_id text NOT NULL REFERENCES machines (id),
    count      bigint NOT NULL,
    hash       text NOT NULL,
    at         timestamptz NOT NULL,
    PRIMARY KEY (machine_id, count, hash)
);

CREATE TABLE invitations (
    token_hash text PRIMARY KEY,
    made_by    text NOT NULL,
    made_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    name       text NOT NULL DEFAULT '',             -- the only name it is good for; '': any
    ephemeral  boolean NOT NULL DEFAULT false,
    uses_left  integer NOT NULL DEFAULT 1 CHECK (uses_left >= 0),
    used_at    timestamptz
);

CREATE TABLE people (
    name       text PRIMARY KEY,
    role       text NOT NULL DEFAULT 'member' CHECK (role IN ('admin', 'member')),
    identities text[] NOT NULL DEFAULT '{}',         -- under which chats know them
    added_at   timestamptz NOT NULL,
    gone_at    timestamptz
);

CREATE TABLE team_members (
    team   text NOT NULL,
    person text NOT NULL REFERENCES people (name),
    PRIMARY KEY (team, person)
);

CREATE TABLE rights (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    holder  text NOT NULL,                           -- a person, or '@team'
    machine text NOT NULL,                           -- patterns: * is any text
    folder  text NOT NULL DEFAULT '*',
    may     text NOT NULL CHECK (may IN ('see', 'answer')),
    machine_like text NOT NULL GENERATED ALWAYS AS
        (replace(replace(replace(replace(machine, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')) STORED,
    folder_like  text NOT NULL GENERATED ALWAYS AS
        (replace(replace(replace(replace(folder, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')) STORED,
    UNIQUE (holder, machine, folder, may)
);

CREATE TABLE logins (
    token_hash text PRIMARY KEY,
    person     text NOT NULL REFERENCES people (name),
    kind       text NOT NULL CHECK (kind IN ('link', 'browser')),   -- a link is traded for a browser's login, once
    made_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE TABLE sessions (
    machine_id text NOT NULL REFERENCES machines (id),
    session_id text NOT NULL,
    seq        bigint NOT NULL,
    body       jsonb NOT NULL,
    state      text NOT NULL,
    PRIMARY KEY (machine_id, session_id)
);

CREATE TABLE prompts (
    machine_id  text NOT NULL REFERENCES machines (id),
    prompt_id   text NOT NULL,
    session_id  text NOT NULL,
    seq         bigint NOT NULL,                     -- an older word of the machine never replaces a newer one
    state       text NOT NULL,                       -- as the machine's hub says
    is_open     boolean NOT NULL,
    body        jsonb NOT NULL,
    folder      text NOT NULL DEFAULT '',
    label       text NOT NULL DEFAULT '',
    tool        text NOT NULL DEFAULT '',
    raised_at   timestamptz NOT NULL,                -- by our clock
    expires_at  timestamptz,                         -- by our clock, from how long the hub gives it
    ended_at    timestamptz,
    decision_id text,                                -- the decision that is under way, or was taken
    PRIMARY KEY (machine_id, prompt_id)
);

CREATE INDEX prompts_that_are_open ON prompts (raised_at) WHERE is_open;
CREATE INDEX prompts_by_end ON prompts (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE decisions (
    id          text PRIMARY KEY,
    machine_id  text NOT NULL,
    prompt_id   text NOT NULL,
    person      text NOT NULL,
    value       text NOT NULL,
    as_text     boolean NOT NULL DEFAULT false,
    place       text NOT NULL DEFAULT '',
    request_key text NOT NULL,
    made_at     timestamptz NOT NULL,
    settled_at  timestamptz,
    ok          boolean,                             -- NULL: the machine has not said anything yet
    stage       text NOT NULL DEFAULT '',            -- or the reason of a refusal
    sentence    text NOT NULL DEFAULT '',
    UNIQUE (person, request_key),
    FOREIGN KEY (machine_id, prompt_id) REFERENCES prompts (machine_id, prompt_id)
);

CREATE INDEX decisions_under_way ON decisions (machine_id) WHERE settled_at IS NULL;

CREATE TABLE proofs (
    id         text PRIMARY KEY,
    machine_id text NOT NULL REFERENCES machines (id),
    asked_at   timestamptz NOT NULL,
    done_at    timestamptz
);

CREATE UNLOGGED TABLE looks (
    machine_id text NOT NULL,
    session_id text NOT NULL,
    person     text NOT NULL,
    until      timestamptz NOT NULL,
    PRIMARY KEY (machine_id, session_id, person)
);

CREATE UNLOGGED TABLE screens (
    machine_id text NOT NULL,
    session_id text NOT NULL,
    body       jsonb,
    PRIMARY KEY (machine_id, session_id)
);

CREATE TABLE rulebook (
    digest  text PRIMARY KEY,
    body    text NOT NULL,
    by_whom text NOT NULL,
    made_at timestamptz NOT NULL
);

CREATE TABLE audit_pending (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL,
    event  text NOT NULL,
    fields jsonb NOT NULL
);

CREATE TABLE audit_entries (
    seq   bigint PRIMARY KEY,
    entry text NOT NULL
);

CREATE TABLE audit_head (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    count bigint NOT NULL,
    hash  text NOT NULL
);

INSERT INTO audit_head (count, hash) VALUES (0, 'genesis');

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit entries are never changed';
END $$;

CREATE TRIGGER audit_entries_are_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
