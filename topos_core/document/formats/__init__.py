"""Text and JSON renderings of findings."""
