"""The command line of AtlasBridge."""
