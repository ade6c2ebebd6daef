"""Rules that a person wrote, and what they say about a question.  Pure."""
