"""The rules that a person wrote, and their verdict on a question. Pure."""
