"""Measures programs on several contenders: each in a process of its own, in turns, with its error beside its time."""
