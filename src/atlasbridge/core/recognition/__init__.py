"""Recognises which question, menu or input box is on the screen, and which keys answer it. All code here is pure."""
