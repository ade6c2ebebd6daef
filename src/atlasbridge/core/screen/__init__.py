"""The terminal emulator: keeps the screen of a tool from its output bytes, as rows of cells. Pure."""
