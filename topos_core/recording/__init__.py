"""Recording: a `Value` behaves like an array of the ecosystem, and what happens to it becomes a tape.

The handle comes first: its methods and the formulas need each other.
"""

from topos_core.recording.value import Value

__all__ = ["Value"]
