ALTER TABLE people ADD COLUMN quiet text[] NOT NULL DEFAULT '{}';       -- spans of a day, such as 22:00-07:00
ALTER TABLE people ADD COLUMN zone text NOT NULL DEFAULT '';
ALTER TABLE prompts ADD COLUMN last_key_at timestamptz;                 -- by our clock: somebody typed at that terminal
ALTER TABLE prompts ADD COLUMN chats_ask boolean NOT NULL DEFAULT false; -- somebody is, or will be, asked in a chat

-- What a channel showed; `told` is the state of the prompt that its message says.
CREATE TABLE chat_deliveries (
    machine_id text NOT NULL,
    prompt_id  text NOT NULL,
    channel    text NOT NULL,
    message_id text NOT NULL,
    shown_at   timestamptz NOT NULL,
    told       text NOT NULL DEFAULT '',
    over       boolean NOT NULL DEFAULT false,                          -- nothing will be said in it any more
    PRIMARY KEY (machine_id, prompt_id, channel, message_id),
    FOREIGN KEY (machine_id, prompt_id) REFERENCES prompts (machine_id, prompt_id)
);

CREATE INDEX sessions_that_run ON sessions (machine_id, session_id) WHERE state = 'active';
CREATE INDEX prompts_of_a_machine_that_are_open ON prompts (machine_id, prompt_id, session_id) WHERE is_open;

CREATE INDEX chat_deliveries_that_live ON chat_deliveries (machine_id, prompt_id) WHERE NOT over;

-- Steps of a prompt's ladder that were taken; who of the people it reached heard a sound.
CREATE TABLE chat_steps (
    machine_id text NOT NULL,
    prompt_id  text NOT NULL,
    step       integer NOT NULL,
    channel    text NOT NULL,
    taken_at   timestamptz NOT NULL,
    heard      text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (machine_id, prompt_id, step, channel),
    FOREIGN KEY (machine_id, prompt_id) REFERENCES prompts (machine_id, prompt_id)
);

CREATE INDEX chat_steps_by_time ON chat_steps (taken_at);

-- Somebody wants to be asked again.
CREATE TABLE chat_wakes (
    machine_id text NOT NULL,
    prompt_id  text NOT NULL,
    person     text NOT NULL,
    due_at     timestamptz NOT NULL,
    made_at    timestamptz NOT NULL,
    PRIMARY KEY (machine_id, prompt_id, due_at),
    FOREIGN KEY (machine_id, prompt_id) REFERENCES prompts (machine_id, prompt_id)
);

CREATE TABLE chat_inbox (
    channel   text NOT NULL,
    update_id text NOT NULL,
    payload   text NOT NULL,
    at        timestamptz NOT NULL,
    settled   boolean NOT NULL DEFAULT false,
    number    bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (channel, update_id)
);

CREATE TABLE chat_notes (
    key   text PRIMARY KEY,
    value text NOT NULL
);
