"""The zygote: a process that has imported all that a session host needs, and forks one for every session."""
