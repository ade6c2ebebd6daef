"""What a prompt is, how it is recognised on a screen, how it lives, and how it is answered.  All of it is pure."""
