"""Latencies of the language server: `python -m benchmarks.editor`."""
