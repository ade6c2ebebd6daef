"""Decides whether a tool waits for a person. Events in, commands out; the time is an argument."""
