"""Deadlines and times: the service that runs due actions, and the parser for times."""
