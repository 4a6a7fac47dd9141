"""Generated loop nests of fusion groups (to come)."""
