"""The person's own terminal: lent to a session and given back as it was."""
