"""What consumers can run or raise."""
