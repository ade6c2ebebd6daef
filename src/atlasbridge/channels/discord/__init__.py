"""Discord: prompts are direct messages with buttons; the gateway tells what people press and write.

The channel needs the `discord` extra.
"""
