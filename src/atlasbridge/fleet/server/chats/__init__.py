"""The server's chats: one server process at a time runs the channels for all machines."""
