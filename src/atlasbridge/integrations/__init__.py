"""Ways to ask without a terminal: scripts, MCP clients and editors ask the same people, through the same hub."""
