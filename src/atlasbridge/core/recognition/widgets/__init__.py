"""One module for each kind of widget: what it looks like, the evidence for and against it, and the keys that answer
it.
"""
