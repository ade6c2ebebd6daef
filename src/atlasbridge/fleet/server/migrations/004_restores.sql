-- A machine and this database recognise each other by the token of their last meeting: a store that went back has an older one.
ALTER TABLE machines ADD COLUMN token text NOT NULL DEFAULT '';          -- of the last meeting that the machine confirmed
ALTER TABLE machines ADD COLUMN token_offered text NOT NULL DEFAULT '';  -- of the newest, which it may not have heard of
ALTER TABLE machines ADD COLUMN meetings bigint NOT NULL DEFAULT 0;
ALTER TABLE machines ADD COLUMN host text NOT NULL DEFAULT '';           -- as the machine calls itself, for people
ALTER TABLE machines ADD COLUMN address text NOT NULL DEFAULT '';
ALTER TABLE machines ADD COLUMN held text NOT NULL DEFAULT '';           -- 'restored', 'cloned': refused until a person decides
ALTER TABLE machines ADD COLUMN others jsonb NOT NULL DEFAULT '[]';      -- who came with another token: token, host, address, at
ALTER TABLE machines ADD COLUMN accepts text NOT NULL DEFAULT '';        -- the token with which a person let it go on
ALTER TABLE machines ADD COLUMN expelled text[] NOT NULL DEFAULT '{}';   -- tokens of those who must join anew
ALTER TABLE machines ADD COLUMN went_back text NOT NULL DEFAULT '';      -- what happened, in a sentence
ALTER TABLE machines ADD COLUMN went_back_at timestamptz;
ALTER TABLE machines ADD COLUMN epochs bigint NOT NULL DEFAULT 0;        -- how many there were: a newer one's word counts more
ALTER TABLE sessions ADD COLUMN epochs bigint NOT NULL DEFAULT 0;
ALTER TABLE prompts ADD COLUMN epochs bigint NOT NULL DEFAULT 0;
ALTER TABLE machines ADD COLUMN limited text NOT NULL DEFAULT '';        -- why not everything that it asks is shown

-- A right that names one machine is that machine's, not its name's.
ALTER TABLE rights ADD COLUMN machine_id text REFERENCES machines (id);
UPDATE rights r SET machine_id = m.id FROM machines m WHERE m.name = r.machine AND m.gone_at IS NULL AND strpos(r.machine, '*') = 0;
DELETE FROM rights WHERE machine_id IS NULL AND strpos(machine, '*') = 0;

-- Where things are decided: a machine's folder.  Rights are judged once for each, and history is read by it.
CREATE TABLE places (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    machine_id text NOT NULL REFERENCES machines (id),
    folder     text NOT NULL,
    decided_at timestamptz NOT NULL,                                     -- the newest decision there
    UNIQUE (machine_id, folder)
);
ALTER TABLE decisions ADD COLUMN place_id bigint REFERENCES places (id);
INSERT INTO places (machine_id, folder, decided_at)
    SELECT d.machine_id, p.folder, max(d.made_at) FROM decisions d JOIN prompts p USING (machine_id, prompt_id) GROUP BY 1, 2;
UPDATE decisions d SET place_id = l.id FROM prompts p, places l
    WHERE (p.machine_id, p.prompt_id) = (d.machine_id, d.prompt_id) AND (l.machine_id, l.folder) = (p.machine_id, p.folder);
CREATE INDEX decisions_by_place ON decisions (place_id, made_at DESC);
CREATE INDEX decisions_by_place_and_person ON decisions (place_id, person, made_at DESC);
CREATE INDEX decisions_of_a_prompt ON decisions (machine_id, prompt_id);
ALTER TABLE sessions ADD COLUMN told_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX sessions_that_ended ON sessions (told_at) WHERE state <> 'active';
CREATE INDEX prompts_by_session ON prompts (machine_id, session_id);

-- What a machine tells its people without asking.
CREATE TABLE notices (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    machine_id text NOT NULL REFERENCES machines (id),
    folder     text NOT NULL DEFAULT '',
    at         timestamptz NOT NULL,
    message    text NOT NULL,
    carried    boolean NOT NULL DEFAULT false                            -- the chats have told it
);
CREATE INDEX notices_that_wait ON notices (id) WHERE NOT carried;
CREATE INDEX notices_by_time ON notices (at);
