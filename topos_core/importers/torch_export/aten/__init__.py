"""What every ATen op is made of: one file a family, each with `TABLE`."""
