"""What runs at a value, in its three forms."""

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.document.phases import changes, phases
from topos_core.matching.catalog import patterns


def scaled(x, w):
    hidden = x @ w
    return nn.softmax(np.abs(hidden - 1.0) + np.floor(hidden) * 0.5)


def told(plan, value):
    (group,) = phases(plan.data, plan.groups, [value])
    return group


@pytest.fixture
def plan():
    return tp.plan(
        tp.trace(scaled, tp.f32[8, 16], tp.f32[16, 16]),
        cost="always",
        off=[name for name in patterns() if name != "softmax"],
    )


def value_of(plan, name):
    return next(value for value, op in enumerate(plan.tape.ops) if op.name == name)


def test_a_group_is_its_recorded_ops_inside_one_head(plan):
    found = told(plan, value_of(plan, "abs"))
    assert found["region"] is None
    assert len(found["values"]) > 1
    recorded = [line["text"] for line in found["recorded"]]
    head, *inside, end = [line["text"] for line in found["grouped"]]
    assert [line.strip() for line in inside] == recorded
    assert (head.partition(" = ")[2].startswith("possible_group("), end) == (True, "}")
    assert found["nest"][0]["text"].startswith("// not run: ")


def test_a_group_names_what_it_reads_and_gives(plan):
    found = told(plan, value_of(plan, "abs"))
    gives, _, reads = found["grouped"][0]["text"].partition(" = ")
    inside = set(found["values"])
    named = {int(one.strip(" %")) for one in reads.removeprefix("possible_group(").removesuffix(") {").split(",")}
    assert named == {operand for value in inside for operand in plan.tape.ops[value].operands} - inside
    assert int(gives.strip("%")) in inside


@pytest.mark.parametrize("name", ["sum", "exp"])
def test_every_op_of_a_taken_region_leads_to_the_region(plan, name):
    (taken,) = plan.taken
    found = told(plan, value_of(plan, name))
    assert found["region"] == f"softmax@{taken.match.root}"
    assert found["grouped"][0]["text"] == f"%{taken.match.root} = softmax(x=%{taken.match.bindings['x']})"
    assert {line["value"] for line in found["recorded"]} == set(found["values"])
    assert (
        found["nest_missing"] == "one kernel that was written by hand runs it"
    )  # the viewer says it too, so it names no viewer


def test_sources_and_dead_ops_belong_to_nothing():
    tape = tp.trace(lambda x: (np.exp(x), np.abs(x))[1], tp.f32[4])
    plan = tp.plan(tape)
    assert "exists before a run" in told(plan, 0)["grouped_missing"]
    assert "nothing runs there" in told(plan, value_of(plan, "exp"))["grouped_missing"]
    assert "runs alone" in told(plan, value_of(plan, "abs"))["grouped_missing"]


def test_a_table_is_named_and_not_written_out():
    tape = tp.trace(lambda x: x + np.arange(32, dtype=np.float32), tp.f32[32])
    plan = tp.plan(tape)
    value = value_of(plan, "constant")
    assert "table" in told(plan, value)["recorded"][0]["text"]


def test_a_generated_region_shows_the_loops_that_run_it():
    plan = tp.plan(tp.trace(lambda x, b: np.sqrt(np.abs(x * b)) - b, tp.f32[6, 40], tp.f32[40]), cost="always")
    (taken,) = plan.taken
    found = told(plan, value_of(plan, "abs"))
    assert found["region"] == f"elementwise_chain@{taken.match.root}"
    assert found["grouped"][0]["text"] == f"%{taken.match.root} = elementwise_chain(%0, %1) {{"
    nest = [line["text"].strip() for line in found["nest"]]
    assert nest[0].startswith("for a in 0..6 {")
    value = value_of(plan, "abs")
    assert next(line["text"].strip() for line in found["nest"] if line["value"] == value).startswith(
        f"%{value} = abs(%"
    )


def test_loops_that_are_not_run_say_why():
    plan = tp.plan(tp.trace(lambda x: np.tanh(x) * 2.0 + 1.0, tp.f32[4]), off=["elementwise_chain"])
    found = told(plan, value_of(plan, "tanh"))
    assert found["region"] is None
    assert found["nest"][0]["text"].startswith("// not run: elementwise chain is switched off here")
    assert found["nest"][1]["text"].startswith("for i in 0..4 {")


def test_all_that_runs_is_told_once_and_in_the_order_of_the_run(plan):
    groups = phases(plan.data, plan.groups)
    assert [tuple(group["values"]) for group in groups] == [*dict.fromkeys(tuple(g["values"]) for g in groups)]
    told_values = {value for group in groups for value in group["values"]}
    assert {step.value for step in plan.data.schedule.steps} <= told_values
    assert [group["region"] for group in groups][-1] == f"softmax@{plan.taken[0].match.root}"
    names = {plan.tape.ops[value].name for group in groups for value in group["values"]}
    assert not names & {"input", "parameter"}


def test_several_values_of_one_group_are_one_answer_and_sources_are_told_alone(plan):
    inside = [value_of(plan, "sum"), value_of(plan, "exp")]
    (found,) = phases(plan.data, plan.groups, [0, *inside])
    assert set(inside) <= set(found["values"])
    (source,) = phases(plan.data, plan.groups, [0])
    assert source["values"] == [0]


def test_a_view_inside_a_region_that_others_read_is_told_by_itself_too():
    def twice(x, w):
        moved = np.transpose(x)
        return nn.softmax(moved), np.reshape(moved, (32,)) @ w

    plan = tp.plan(tp.trace(twice, tp.f32[4, 8], tp.f32[32, 2]), cost="always")
    covered = [group["values"] for group in phases(plan.data, plan.groups)]
    ran = [step.value for step in plan.data.schedule.steps]
    assert all(any(value in values for values in covered) for value in ran)


def test_what_a_form_changes_is_marked_and_indentation_is_no_change():
    before = [{"value": 1, "text": "%1 = abs(%0)"}, {"value": 2, "text": "%2 = neg(%1)"}]
    now = [{"value": 2, "text": "%2 = group(%0) {"}, {"value": 1, "text": "  %1 = abs(%0)"}, {"value": 2, "text": "}"}]
    signs = [(line["sign"], line["text"]) for line in changes(before, now)]
    assert signs == [("+", "%2 = group(%0) {"), ("", "  %1 = abs(%0)"), ("-", "%2 = neg(%1)"), ("+", "}")]


def test_the_changes_of_every_form_lead_from_the_form_before_to_it():
    plan = tp.plan(tp.trace(lambda x, b: np.sqrt(np.abs(x * b)) - b, tp.f32[6, 40], tp.f32[40]), cost="always")
    found = told(plan, value_of(plan, "abs"))
    for before, name in (("recorded", "grouped"), ("grouped", "nest")):
        marked = found[f"{name}_changes"]
        assert [line["text"] for line in marked if line["sign"] != "-"] == [line["text"] for line in found[name]]
        kept = [line["text"].strip() for line in marked if line["sign"] != "+"]
        assert kept == [line["text"].strip() for line in found[before]]
