"""What is asked: which question, menu or box stands on a picture of the screen, and which keys answer it.  Pure."""
