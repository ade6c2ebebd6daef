"""gptme."""
