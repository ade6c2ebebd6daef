"""Deadlines and times: a pure queue, the service that runs due actions, and the parser for times."""
