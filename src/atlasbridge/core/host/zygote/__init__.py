"""The zygote: a fork server that has already imported a session host's modules, and one spare host that waits."""
