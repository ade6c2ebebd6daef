-- What is looked at again and again must not be looked for in everything that ever was.
CREATE INDEX decisions_by_time ON decisions (made_at);
CREATE INDEX proofs_that_wait ON proofs (machine_id) WHERE done_at IS NULL;
