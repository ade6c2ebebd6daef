"""The figures that the pages on detection publish: how often it is right, and which of its rules are needed."""
