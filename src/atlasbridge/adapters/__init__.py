"""Knowledge about each tool. `base` is the frozen interface; a tool is a small class and a dialect file."""
