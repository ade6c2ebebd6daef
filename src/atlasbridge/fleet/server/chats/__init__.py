"""The server's chats: the channels of a hub, carried for all machines by one server process at a time."""
