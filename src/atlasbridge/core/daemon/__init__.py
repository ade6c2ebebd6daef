"""The hub: its process, its services and its interfaces to hosts, channels and commands."""
