"""OpenAI's plain command line; `codex` is OpenAI's agent."""
