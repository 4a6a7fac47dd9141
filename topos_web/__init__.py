"""The plan viewer's server."""
