"""The client: passes the person's terminal to a session and restores it afterwards."""
