"""The web page and the HTTP API, served by the hub itself. Enabled by default, on loopback, without any account."""
