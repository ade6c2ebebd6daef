"""AtlasBridge: detects when a terminal program waits for a person, asks that person, and types the answer."""

__version__ = "0.1.0"
