from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from topos_core.cost.machine import machine_from
from topos_core.cost.profiles import derived_host, machine, machine_names
from topos_core.errors import ConfigurationError


def test_every_named_profile_exists_and_says_where_its_figures_come_from() -> None:
    for name in machine_names():
        profile = machine(name)
        assert profile.name == name
        assert profile.source
        assert min(profile.flops_per_second.values()) > 0


def test_a_host_that_was_not_calibrated_says_so() -> None:
    host = machine("host")
    assert host is derived_host()
    assert "not calibrated" in host.title
    assert host.provenance == "modelled"


def test_a_calibration_replaces_the_derived_host_and_survives_text() -> None:
    calibrated = replace(machine("reference"), name="host", title="calibrated", provenance="measured")
    assert machine("host", calibrated=machine_from(asdict(calibrated))) == calibrated
    assert machine("reference", calibrated=calibrated) == machine("reference")


def test_an_unknown_profile_lists_those_that_exist() -> None:
    with pytest.raises(ConfigurationError, match="no machine profile 'h100'; use one of host reference a100"):
        machine("h100")


def test_a_broken_calibration_names_the_remedy() -> None:
    data = asdict(machine("reference"))
    del data["recorded"]["call_seconds"]
    with pytest.raises(ConfigurationError, match=r"call_seconds.*; have it written anew"):
        machine_from(data)


def test_accelerators_are_for_planning_only() -> None:
    assert machine("a100").planning_only
    assert not machine("reference").planning_only
