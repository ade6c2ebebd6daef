"""The desk's chats: the channels of a hub, carried for all machines by one desk process at a time."""
