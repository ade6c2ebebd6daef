-- The server's key can be replaced: the old one signs the new one, and machines follow from one to the next.
CREATE TABLE server_keys (
    old_key  text PRIMARY KEY,
    new_key  text NOT NULL UNIQUE,
    endorsed text NOT NULL,                              -- the old key's signature over both
    made_at  timestamptz NOT NULL
);

-- Buttons in chats outlive a key.
ALTER TABLE desk_identity ADD COLUMN chat_secret text NOT NULL DEFAULT '';
UPDATE desk_identity SET chat_secret = private_key;
