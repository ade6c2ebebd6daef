"""Where people are asked: each channel carries prompts out and replies in, and decides nothing."""
