"""The core of AtlasBridge: pure decisions, and the services that carry them out."""
