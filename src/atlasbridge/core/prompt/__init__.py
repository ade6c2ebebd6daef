"""What a prompt is, how it lives, what answers it, and who may.  All of it is pure."""
