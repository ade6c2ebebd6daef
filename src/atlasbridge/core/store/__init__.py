"""The store: the SQLite database and the audit log. The hub is its only writer."""
