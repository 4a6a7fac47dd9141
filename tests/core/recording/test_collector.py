"""The collector's part in long imports; what a trace does with it is in `test_trace.py`."""

import gc

from topos_core.recording.collector import collector_rare


def test_the_collector_is_rare_meanwhile_and_as_before_afterwards_with_what_is_there_frozen():
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    try:
        with collector_rare():
            assert gc.get_threshold()[0] > before[0]
            assert gc.isenabled()
            kept = [[number] for number in range(1000)]
        assert gc.get_threshold() == before
        assert gc.get_freeze_count() >= frozen + len(kept)
    finally:
        gc.unfreeze()
