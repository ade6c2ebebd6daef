"""ptypool: a pool of pseudo-terminals for asyncio."""
