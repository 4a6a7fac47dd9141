"""Matrix products in register tiles."""
