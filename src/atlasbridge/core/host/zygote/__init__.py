"""The zygote: a fork server that has all imports of a session host done, and one spare host that waits."""
