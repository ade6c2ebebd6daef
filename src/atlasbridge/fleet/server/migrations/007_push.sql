-- Browsers that want push messages. A subscription ends with its login.
CREATE TABLE push_subscriptions (
    endpoint text PRIMARY KEY,
    login_id text NOT NULL REFERENCES logins (id) ON DELETE CASCADE,
    keys     jsonb NOT NULL,
    made_at  timestamptz NOT NULL
);
CREATE INDEX push_subscriptions_by_login ON push_subscriptions (login_id);

-- Which browser has been told of which open prompt: the server that inserts a row sends the message.
CREATE TABLE push_messages (
    endpoint   text NOT NULL REFERENCES push_subscriptions (endpoint) ON DELETE CASCADE,
    machine_id text NOT NULL,
    prompt_id  text NOT NULL,
    PRIMARY KEY (machine_id, prompt_id, endpoint),
    FOREIGN KEY (machine_id, prompt_id) REFERENCES prompts (machine_id, prompt_id) ON DELETE CASCADE
);
CREATE INDEX push_messages_by_endpoint ON push_messages (endpoint);

-- The key pair that push services know all servers by; made when the first browser asks.
CREATE TABLE push_key (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    pem text NOT NULL
);
