"""Expressions of elementwise ops and reductions: what they cost, how their loops lie, and what runs them."""
