"""What stands on the screen: the output bytes of a tool, kept by an emulator of our own as rows of cells.  Pure."""
