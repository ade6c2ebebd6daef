"""One module for each kind of widget: what it looks like, what counts for and against it, and the keys for it."""
