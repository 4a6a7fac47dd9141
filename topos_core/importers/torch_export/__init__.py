"""Modules of torch become tapes: non-strict `torch.export`, its ATen ops through the formulas of `nn`."""
