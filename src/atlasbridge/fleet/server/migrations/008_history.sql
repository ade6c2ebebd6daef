-- What one person decided is found without reading what all others decided since.
CREATE INDEX decisions_by_person ON decisions (person, made_at DESC);
