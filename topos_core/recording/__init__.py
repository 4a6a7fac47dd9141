"""Recording: model code becomes a tape."""
