"""What the StableHLO emitter can raise."""
