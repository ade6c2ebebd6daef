"""One module per kind of widget: what it sees, what speaks for and against it, and which keys answer it."""
