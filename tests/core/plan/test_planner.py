from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.core.plan.consumers import FREE, Answers, Found, planner
from tests.core.plan.matches import match
from tests.support.tapes import TapeBuilder
from topos_core.cost.work import Work
from topos_core.errors import ConfigurationError
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.matching.match import Match
from topos_core.plan.decision import Decision, Firm, Flip, Number, Outbid
from topos_core.plan.plan import PlanData
from topos_core.plan.planner import Planner
from topos_core.plan.request import Request
from topos_core.plan.schedule import Schedule, schedule
from topos_core.tape.tape import Tape

REFERENCE = Request(machine="reference")
SLOW = Offer("slow kernel", Work(flops=10**9), exact=True)
LOOSE = FREE._replace(kernel="loose kernel", exact=False)


class Net:
    """A convolution-like chain: x -> windows (movement) -> product -> biased -> activated, with a second reader slot."""

    def __init__(self) -> None:
        self.b = TapeBuilder()
        b = self.b
        self.x = b.input("x", "f32[64,64]")
        self.w = b.parameter("w", "f32[64,64]")
        self.bias = b.parameter("bias", "f32[64,64]")
        self.windows = b.op("permute", self.x, order=(1, 0))
        self.product = b.op("matmul", self.windows, self.w, accumulate="f32")
        self.biased = b.op("add", self.product, self.bias)
        self.zero = b.constant(0.0, "f32[64,64]")
        self.out = b.op("maximum", self.biased, self.zero)

    def matches(self, tape: Tape) -> dict[str, Match]:
        conv = {"x": self.x, "kernel": self.w}
        return {
            "conv": match(tape, "convolution", self.product, conv),
            "biased": match(tape, "conv_bn_activation", self.biased, {**conv, "bias": self.bias}),
            "whole": match(tape, "conv_bn_activation", self.out, {**conv, "bias": self.bias}),
            "matmul": match(tape, "matmul", self.product, {"a": self.windows, "b": self.w}),
            "chain": match(tape, "elementwise_chain", self.out, {"a": self.product, "b": self.bias}),
            "tail": match(tape, "silu", self.out, {"a": self.product, "b": self.bias}),
        }


def story(plan: PlanData, matches: Mapping[str, Match]) -> dict[str, Any]:
    """Tells verdict (and code) by the case's own names."""
    names = {m.id: name for name, m in matches.items()}
    return {names[d.match.id]: d.verdict if d.code is None else (d.verdict, d.code) for d in plan.decisions}


def decision(plan: PlanData, m: Match) -> Decision:
    return next(d for d in plan.decisions if d.match.id == m.id)


def plan_net(
    *picked: str,
    answers: Mapping[str, Offer | Decline] | None = None,
    request: Request = REFERENCE,
    readers: Sequence[tuple[str, str]] = (),
    observe: Sequence[str] = (),
    results: Sequence[str] = ("out",),
) -> tuple[PlanData, Net, dict[str, Match]]:
    """Plans the net; `readers` adds (op, operand name) readers that lead to a result, `observe` observes by name."""
    net = Net()
    extra = [net.b.op(op, getattr(net, operand)) for op, operand in readers]
    for name in observe:
        net.b.observe(getattr(net, name), name)
    tape = net.b.tape(*(getattr(net, name) for name in results), *extra)
    matches = net.matches(tape)
    chosen = {name: matches[name] for name in picked or matches}
    return planner(tape, list(chosen.values()), answers).plan(request), net, matches


# -- who is taken


def test_the_largest_saving_is_taken_and_contains_the_rest() -> None:
    plan, _, m = plan_net()
    assert story(plan, m) == {"whole": "taken"}
    # Of its own pattern nothing is listed; the others are, uncounted.
    inside = ("conv", "matmul", "chain", "tail")
    assert decision(plan, m["whole"]).contains == tuple(m[name].id for name in inside)
    assert [step.value for step in plan.schedule.steps] == [m["whole"].root]


def test_a_smaller_match_of_the_same_pattern_stands_in_when_the_larger_falls() -> None:
    no = Decline("TP206", "no-kernel", "no kernel for this activation")
    plan, _, m = plan_net("whole", "biased", answers={f"conv_bn_activation@{Net().out}": no})
    assert story(plan, m) == {"biased": "taken", "whole": ("declined", "TP206")}


def test_matches_of_one_pattern_that_fall_for_one_reason_are_told_once() -> None:
    no = Decline("TP206", "no-kernel", "no kernel for bf16")
    plan, _, m = plan_net("whole", "biased", answers={"conv_bn_activation": no})
    assert story(plan, m) == {"whole": ("declined", "TP206")}


def test_the_last_patterns_take_what_the_others_leave() -> None:
    plan, _, m = plan_net("conv", "matmul", "chain")
    assert story(plan, m) == {"conv": "taken", "chain": "taken"}
    plan, _, m = plan_net("conv", "matmul", "chain", answers={"convolution": SLOW})
    # Equal claims: the convolution does not pay, so the matmul, listed later, may stand; both are told.
    assert story(plan, m) == {"conv": ("declined", "TP202"), "matmul": "taken", "chain": "taken"}


def test_a_partial_overlap_is_declined_with_its_winner() -> None:
    plan, _, m = plan_net("biased", "tail")
    assert story(plan, m) == {"biased": "taken", "tail": ("declined", "TP204")}
    lost = decision(plan, m["tail"])
    assert lost.winner == m["biased"].id
    assert lost.outbid == Outbid("seconds", 1, decision(plan, m["biased"]).numbers["benefit"], lost.numbers["benefit"])


def test_where_every_legal_match_is_wanted_ops_decide_and_are_told() -> None:
    always = replace(REFERENCE, cost="always")
    plan, _, m = plan_net("biased", "tail", request=always)
    lost = decision(plan, m["tail"])
    assert lost.outbid == Outbid("even", 1, decision(plan, m["biased"]).numbers["benefit"], lost.numbers["benefit"])
    plan, _, m = plan_net("conv", "biased", "tail", request=always)
    lost = decision(plan, m["biased"])
    assert lost.outbid == Outbid("ops", 2, Number(3, "op", "counted"), Number(2, "op", "counted"))
    assert lost.winner == m["conv"].id


def test_the_last_patterns_say_nothing_about_ops_that_others_speak_of() -> None:
    plan, _, m = plan_net("biased", "chain")
    assert story(plan, m) == {"biased": "taken"}
    plan, _, m = plan_net("biased", "chain", answers={"conv_bn_activation": SLOW, "elementwise_chain": SLOW})
    assert story(plan, m) == {"biased": ("declined", "TP202")}
    plan, _, m = plan_net("chain", answers={"elementwise_chain": SLOW})
    assert story(plan, m) == {"chain": ("declined", "TP202")}


# -- codes and their order


@pytest.mark.parametrize(
    ("answer", "request_", "readers", "code"),
    [
        (Decline("TP206", "no-kernel", "no"), REFERENCE, [("exp", "product")], "TP206"),
        (Decline("TP207", "guard", "no"), REFERENCE, [("exp", "product")], "TP207"),
        (Decline("TP209", "unknown-extent", "no"), REFERENCE, [("exp", "product")], "TP209"),
        (LOOSE, replace(REFERENCE, fidelity="exact"), [("exp", "product")], "TP205"),
        (FREE, replace(REFERENCE, off=frozenset({"conv_bn_activation"})), [("exp", "product")], "TP203"),
        (SLOW, replace(REFERENCE, off=frozenset({"conv_bn_activation"})), [], "TP208"),
        (SLOW, REFERENCE, [], "TP202"),
    ],
)
def test_the_first_code_that_holds_is_told(answer: Any, request_: Request, readers: Any, code: str) -> None:
    plan, _, m = plan_net("whole", answers={"conv_bn_activation": answer}, request=request_, readers=readers)
    assert story(plan, m) == {"whole": ("declined", code)}


def test_cost_is_told_before_a_rival() -> None:
    plan, _, m = plan_net("biased", "tail", answers={"silu": SLOW})
    assert story(plan, m)["tail"] == ("declined", "TP202")


def test_switching_off_reaches_one_place_or_all() -> None:
    everywhere = replace(REFERENCE, off=frozenset({"conv_bn_activation"}))
    plan, _, m = plan_net("whole", "biased", request=everywhere)
    assert {d.code for d in plan.decisions} == {"TP208"}
    here = replace(REFERENCE, off_at=frozenset({("conv_bn_activation", Net().out)}))
    plan, _, m = plan_net("whole", "biased", request=here)
    assert story(plan, m) == {"whole": ("declined", "TP208"), "biased": "taken"}


@pytest.mark.parametrize(("extra", "verdict"), [(-1, "taken"), (0, "declined"), (1, "declined")])
def test_a_kernel_as_slow_as_the_recorded_ops_is_declined_with_both_numbers(extra: int, verdict: str) -> None:
    plan, _, m = plan_net("matmul")
    free = decision(plan, m["matmul"]).numbers
    slack = free["benefit"].value * 263e9
    flops = round(slack) + extra * 10_000  # 10,000 flops are 38 ns on the reference machine
    if extra == 0:
        # The break-even point exactly: one femtosecond is the unit of account.
        flops = next(f for f in range(round(slack) - 5, round(slack) + 5) if f / 263e9 >= free["benefit"].value)
    plan, _, m = plan_net("matmul", answers={"matmul": Offer("k", Work(flops=flops), exact=True)})
    got = decision(plan, m["matmul"])
    assert got.verdict == verdict
    assert (got.numbers["seconds_after"].value < got.numbers["seconds_before"].value) == (verdict == "taken")
    assert {got.numbers[n].basis for n in ("seconds_before", "seconds_after", "benefit")} == {"modelled"}
    assert {got.numbers[n].basis for n in ("flops_before", "bytes_after", "calls_before")} == {"counted"}


@pytest.mark.parametrize(
    ("offer", "of"),
    [
        (Offer("k", Work(flops=10**6), exact=True, efficiency=0.2, calls=0.5), "efficiency"),
        (Offer("k", Work(bytes_read=10**6), exact=True, efficiency=0.25, calls=0.5), "efficiency"),
        (Offer("k", Work(flops=10**5), exact=True, efficiency=0.5, calls=10.0), "start"),
        (Offer("k", Work(), exact=True, calls=10.0), "start"),
    ],
)
def test_a_decline_by_cost_flips_at_its_break_even(offer: Offer, of: str) -> None:
    def decided(**changed: float) -> Decision:
        plan, _, m = plan_net("matmul", answers={"matmul": offer._replace(**changed)})
        return decision(plan, m["matmul"])

    d = decided()
    assert d.code == "TP202"
    assert isinstance(d.flip, Flip)
    assert (d.flip.of, d.flip.now.basis, d.flip.at.basis) == (of, "modelled", "modelled")
    ratio = d.flip.at.value / d.flip.now.value
    if of == "efficiency":
        assert d.flip.now.value == offer.efficiency
        assert d.flip.now.value < d.flip.at.value < 1
        assert decided(efficiency=offer.efficiency * ratio * 1.01).verdict == "taken"
        assert decided(efficiency=offer.efficiency * ratio * 0.99).code == "TP202"
    else:
        assert d.flip.now.value == pytest.approx(offer.calls * 4e-6)
        assert decided(calls=offer.calls * ratio * 0.99).verdict == "taken"
        assert decided(calls=offer.calls * ratio * 1.01).code == "TP202"


def test_no_one_term_flips_a_kernel_that_is_too_slow_at_its_best() -> None:
    plan, _, m = plan_net("matmul", answers={"matmul": SLOW})
    d = decision(plan, m["matmul"])
    assert isinstance(d.flip, Firm)
    whole, started, before = (figure.value for figure in d.flip.numbers)
    assert (d.flip.why, before) == ("slow", pytest.approx(d.numbers["seconds_before"].value))
    assert min(whole, started) > before


def test_an_observation_keeps_a_decline_by_cost_from_flipping() -> None:
    answers = {"conv_bn_activation": FREE._replace(calls=30.0)}
    plan, net, m = plan_net("biased", answers=answers, observe=("product",))
    d = decision(plan, m["biased"])
    assert (d.code, d.flip) == ("TP202", Firm("observed", value=net.product, row=1))
    alone, _, m = plan_net("biased", answers=answers)
    assert isinstance(decision(alone, m["biased"]).flip, Flip)


@pytest.mark.parametrize(("rival", "outbids"), [("matmul", False), ("tail", True)])
def test_a_decline_by_cost_flips_where_it_outbids_its_rivals(rival: str, outbids: bool) -> None:
    def decided(calls: float, *names: str) -> Decision:
        plan, _, m = plan_net(*names, answers={"conv_bn_activation": FREE._replace(calls=calls)})
        return decision(plan, m["biased"])

    alone, contested = decided(30.0, "biased").flip, decided(30.0, "biased", rival).flip
    assert isinstance(alone, Flip)
    assert isinstance(contested, Flip)
    assert (contested.at.value < alone.at.value) == outbids  # what is elected last makes way
    calls = 30.0 * contested.at.value / contested.now.value
    assert decided(calls * 0.99, "biased", rival).verdict == "taken"
    assert decided(calls * 1.01, "biased", rival).verdict == "declined"


def test_a_decline_by_cost_that_could_not_save_what_its_rival_does_names_that() -> None:
    answers = {"conv_bn_activation": FREE._replace(work=Work(flops=3 * 10**6), calls=30.0)}
    plan, _, m = plan_net("biased", "tail", answers=answers)
    d = decision(plan, m["biased"])
    assert isinstance(d.flip, Firm)
    assert (d.flip.why, d.flip.rival) == ("rival", m["tail"].id)
    needed, most = (figure.value for figure in d.flip.numbers)
    assert 0 < most < needed == pytest.approx(decision(plan, m["tail"]).numbers["benefit"].value)


def test_cost_always_takes_every_legal_match() -> None:
    always = replace(REFERENCE, cost="always")
    plan, _, m = plan_net("conv", "chain", answers={"convolution": SLOW, "elementwise_chain": SLOW}, request=always)
    assert story(plan, m) == {"conv": "taken", "chain": "taken"}
    plan, _, m = plan_net(answers={"conv_bn_activation": SLOW}, request=always)
    assert story(plan, m) == {"whole": "taken"}  # most computing ops, then fewest regions


def test_a_raise_is_taken_whatever_it_is_predicted_to_cost() -> None:
    plan, _, m = plan_net(
        "whole", answers={"conv_bn_activation": SLOW}, request=replace(REFERENCE, consumer="stablehlo")
    )
    assert story(plan, m) == {"whole": "taken"}


# -- readers of the inside


def test_a_computing_interior_that_the_program_reads_declines_and_names_the_reader() -> None:
    plan, net, m = plan_net("whole", readers=[("exp", "product")])
    got = decision(plan, m["whole"])
    assert (got.verdict, got.code, got.word) == ("declined", "TP203", "shared-interior")
    assert [plan.tape.ops[u].name for u in got.readers] == ["exp"]
    assert got.paths == ((net.product, got.readers[0]),)


def test_movement_of_a_binding_is_nobodys() -> None:
    plan, net, m = plan_net("whole", readers=[("exp", "windows")])
    assert story(plan, m) == {"whole": "taken"}
    assert net.windows in [step.value for step in plan.schedule.steps]  # an unclaimed reader remains


def test_movement_of_a_computed_inner_value_is_owned() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[8,8]")
    inner = b.op("exp", x)
    turned = b.op("permute", inner, order=(1, 0))
    out = b.op("neg", turned)
    other = b.op("abs", turned)
    tape = b.tape(out, other)
    m = match(tape, "elementwise_chain", out, {"x": x})
    (got,) = planner(tape, [m]).plan(REFERENCE).decisions
    assert got.code == "TP203"
    assert got.readers == (other,)


def test_a_dead_reader_counts_for_nothing() -> None:
    net = Net()
    net.b.op("exp", net.product)
    tape = net.b.tape(net.out)
    m = net.matches(tape)
    assert story(planner(tape, [m["whole"]]).plan(REFERENCE), m) == {"whole": "taken"}


def test_a_match_that_leads_nowhere_is_not_decided() -> None:
    net = Net()
    tape = net.b.tape(net.x)
    assert planner(tape, list(net.matches(tape).values())).plan(REFERENCE).decisions == ()


def test_equal_matches_at_one_value_read_twice_count_every_link() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[65536]")
    inner = b.op("exp", x)
    out = b.op("mul", inner, inner)
    tape = b.tape(out)
    m = match(tape, "elementwise_chain", out, {"x": x})
    assert [d.verdict for d in planner(tape, [m]).plan(REFERENCE).decisions] == ["taken"]


# -- observations


def test_an_observed_interior_blocks_with_price_and_a_free_place() -> None:
    plan, net, m = plan_net("whole", "conv", observe=["biased"])
    got = decision(plan, m["whole"])
    assert (got.verdict, got.code, got.word) == ("blocked", "TP101", "observed")
    assert [plan.observations[row].name for row in got.observations] == ["biased"]
    assert got.paths == ((net.biased,),)
    assert got.nearest_free == net.out
    conv = decision(plan, m["conv"])
    assert (conv.verdict, conv.parent) == ("taken", m["whole"].id)
    saved = got.numbers["benefit"].value - conv.numbers["benefit"].value
    assert got.numbers["price"].value == pytest.approx(saved)
    assert got.numbers["price"].unit == "second"


def test_the_free_place_is_downstream_or_upstream_and_never_beside() -> None:
    net = Net()
    b = net.b
    scaled = b.op("exp", net.w)  # computed before the region and read by it: free, but no answer for the windows
    windows = b.op("permute", b.op("abs", net.x), order=(1, 0))
    product = b.op("matmul", windows, scaled, accumulate="f32")
    out = b.op("neg", product)
    b.observe(windows, "windows")
    tape = b.tape(out)
    m = match(tape, "linear_bias_activation", out, {"x": windows - 1, "w": scaled})
    got = decision(planner(tape, [m]).plan(REFERENCE), m)
    assert got.nearest_free == windows - 1  # one step up; the result is two steps down
    deep = match(tape, "linear_bias_activation", out, {"x": net.x, "w": scaled})
    assert decision(planner(tape, [deep]).plan(REFERENCE), deep).nearest_free == out


def test_what_is_made_of_parameters_alone_is_no_free_place() -> None:
    b = TapeBuilder()
    x, w = b.input("x", "f32[256,256]"), b.parameter("w", "f32[256,256]")
    turned = b.op("permute", w, order=(1, 0))
    product = b.op("matmul", b.op("abs", x), turned, accumulate="f32")
    out = b.op("exp", b.op("neg", product))
    b.observe(product, "product")
    tape = b.tape(out)
    m = match(tape, "linear_bias_activation", out, {"x": x, "w": turned})
    assert (
        decision(planner(tape, [m]).plan(REFERENCE), m).nearest_free == out
    )  # two steps down; `turned` is one step up


def test_an_observed_movement_value_blocks_too() -> None:
    plan, _, m = plan_net("whole", observe=["windows"])
    assert story(plan, m) == {"whole": ("blocked", "TP101")}


def test_observing_bindings_results_and_constants_blocks_nothing() -> None:
    plan, _, m = plan_net("whole", observe=["x", "w", "out", "zero"])
    assert story(plan, m) == {"whole": "taken"}


def test_what_the_blocked_one_would_have_covered_is_named_there() -> None:
    plan, _, m = plan_net("whole", "conv", "biased", observe=["windows"])
    assert story(plan, m) == {"whole": ("blocked", "TP101")}
    assert decision(plan, m["whole"]).contains == (m["conv"].id,)


def test_a_set_aside_match_that_would_not_win_is_declined_and_not_blocked() -> None:
    plan, _, m = plan_net("whole", answers={"conv_bn_activation": SLOW}, observe=["biased"])
    assert story(plan, m) == {"whole": ("declined", "TP202")}
    plan, _, m = plan_net("tail", "biased", observe=["biased"])
    # Without the observation the tail would still lose to the convolution with its bias.
    assert story(plan, m) == {"biased": "taken", "tail": ("declined", "TP204")}


def test_an_observed_region_never_outbids_one_that_can_run() -> None:
    plan, _, m = plan_net("whole", "biased", "chain", observe=["biased"])
    assert story(plan, m)["biased"] == "taken"
    assert story(plan, m)["whole"] == ("blocked", "TP101")


def test_a_returned_interior_is_an_observation_like_any_other() -> None:
    plan, _, m = plan_net("whole", results=["out", "biased"])
    got = decision(plan, m["whole"])
    assert got.verdict == "blocked"
    assert [plan.observations[row].kind for row in got.observations] == ["output"]


def test_a_reader_that_leads_only_to_an_observation_is_part_of_it() -> None:
    net = Net()
    peak = net.b.op("max", net.b.op("abs", net.product), axes=(0, 1))
    net.b.observe(peak, "hook", kind="hook")
    tape = net.b.tape(net.out)
    m = net.matches(tape)
    got = decision(planner(tape, [m["whole"]]).plan(REFERENCE), m["whole"])
    assert got.code == "TP101"
    assert got.paths == ((net.product, peak - 1, peak),)
    assert got.nearest_free == net.out  # what the hook makes of the value would only prolong the observation


def test_a_reader_that_leads_to_an_observation_and_to_an_output_is_a_reader() -> None:
    net = Net()
    also = net.b.op("abs", net.product)
    net.b.observe(also, "seen")
    tape = net.b.tape(net.out, net.b.op("neg", also))
    m = net.matches(tape)
    assert decision(planner(tape, [m["whole"]]).plan(REFERENCE), m["whole"]).code == "TP203"


def test_ignoring_an_observation_frees_the_region_and_adding_one_blocks_it() -> None:
    net = Net()
    row = net.b.observe(net.biased, "biased")
    tape = net.b.tape(net.out)
    m = net.matches(tape)
    p = planner(tape, [m["whole"], m["conv"]])
    assert story(p.plan(REFERENCE), m)["whole"] == ("blocked", "TP101")
    free = replace(REFERENCE, ignore=frozenset({row + 1}))
    assert story(p.plan(free), m) == {"whole": "taken"}
    again = p.plan(replace(free, observe=(net.product,)))
    assert story(again, m) == {"whole": ("blocked", "TP101"), "conv": "taken"}
    assert again.observed == (net.product,)
    assert decision(again, m["whole"]).observations == (len(tape.observations),)


def norm(observed: bool) -> tuple[Tape, Match, int]:
    b = TapeBuilder()
    x = b.input("x", "f32[512,64]")
    mean = b.op("div", b.op("sum", x, axes=(0,), accumulate="f32"), b.constant(512.0, "f32[64]"))
    out = b.op("sub", x, b.op("broadcast", mean, shape=(512, 64)))
    if observed:
        b.observe(mean, "mean")
    tape = b.tape(out)
    return tape, match(tape, "batch_norm_training", out, {"x": x}, named={"mean": (mean,)}), mean


def test_observing_a_named_result_blocks_nothing_and_the_region_writes_it() -> None:
    tape, m, mean = norm(observed=True)
    plan = planner(tape, [m]).plan(REFERENCE)
    assert [d.verdict for d in plan.decisions] == ["taken"]
    (step,) = plan.schedule.steps
    assert step.produces == (mean, m.root)
    assert step.frees == ()


# -- cycles


def test_a_match_that_waits_for_its_own_named_result_is_declined_with_the_reader() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[512,64]")
    mean = b.op("sum", x, axes=(0,), accumulate="f32")
    scale = b.op("exp", mean)
    centred = b.op("sub", x, b.op("broadcast", mean, shape=(512, 64)))
    out = b.op("mul", centred, b.op("broadcast", scale, shape=(512, 64)))
    tape = b.tape(out)
    m = match(tape, "batch_norm_training", out, {"x": x, "scale": scale}, named={"mean": (mean,)})
    (got,) = planner(tape, [m]).plan(REFERENCE).decisions
    assert (got.verdict, got.code) == ("declined", "TP203")
    assert got.readers == (scale,)


def waiting() -> tuple[Tape, list[Match]]:
    """Two norms, of which each reads a mean that the other one makes."""
    b = TapeBuilder()
    x, y = b.input("x", "f32[512,64]"), b.input("y", "f32[512,64]")
    first_mean = b.op("sum", x, axes=(0,), accumulate="f32")
    second_mean = b.op("sum", y, axes=(0,), accumulate="f32")
    first = b.op("sub", x, b.op("broadcast", second_mean, shape=(512, 64)))
    second = b.op("sub", y, b.op("broadcast", first_mean, shape=(512, 64)))
    tape = b.tape(b.op("add", first, b.op("exp", first)), second)
    matches = [
        match(tape, "batch_norm_training", first, {"x": x, "m": second_mean}, {"mean": (first_mean,)}, inside=()),
        match(tape, "batch_norm_training", second, {"x": y, "m": first_mean}, {"mean": (second_mean,)}, inside=()),
    ]
    return tape, matches


def test_two_matches_that_wait_for_each_other_are_not_both_taken() -> None:
    plan = planner(*waiting()).plan(REFERENCE)
    assert sorted((d.verdict, d.code) for d in plan.decisions) == [("declined", "TP204"), ("taken", None)]
    assert [d.outbid for d in plan.decisions if d.code == "TP204"] == [Outbid("cycle", 1)]


def test_no_one_term_flips_a_decline_by_cost_that_would_close_a_cycle() -> None:
    tape, (one, other) = waiting()
    dear = FREE._replace(calls=30.0)

    def told(matches: Sequence[Match]) -> list[Flip | Firm | None]:
        return [
            d.flip for d in planner(tape, matches, {one.pattern: dear}).plan(REFERENCE).decisions if d.code == "TP202"
        ]

    other = replace(other, pattern="instance_norm")
    assert told([one, other]) == [Firm("cycle")]
    assert all(isinstance(flip, Flip) for flip in told([one]))


def test_nothing_flips_a_decline_by_cost_that_would_wait_for_itself() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[512,64]")
    mean = b.op("sum", x, axes=(0,), accumulate="f32")
    scale = b.op("exp", mean)
    out = b.op(
        "mul", b.op("sub", x, b.op("broadcast", mean, shape=(512, 64))), b.op("broadcast", scale, shape=(512, 64))
    )
    m = match(b.tape(out), "batch_norm_training", out, {"x": x, "scale": scale}, named={"mean": (mean,)})
    (d,) = planner(b.tape(out), [m], {m.pattern: FREE._replace(calls=30.0)}).plan(REFERENCE).decisions
    assert (d.code, d.flip) == ("TP202", Firm("itself"))


# -- bookkeeping


def test_shared_movement_is_credited_by_its_share_of_readers() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[32,64]")
    flat = b.op("reshape", b.op("permute", x, order=(1, 0)), shape=(32, 64))  # a copy of 8192 bytes
    w = b.parameter("w", "f32[64,64]")
    one, two = b.op("matmul", flat, w, accumulate="f32"), b.op("matmul", flat, w, accumulate="f32")
    tape = b.tape(one, two)
    matches = [match(tape, "linear", root, {"x": x, "w": w}) for root in (one, two)]
    alone = planner(b.tape(one), [matches[0]]).plan(REFERENCE).decisions[0].numbers
    both = [d.numbers for d in planner(tape, matches).plan(REFERENCE).decisions]
    copy = 2 * 8192
    assert [n["bytes_before"].value for n in both] == [alone["bytes_before"].value - copy / 2] * 2
    assert [n["interior_bytes"].value for n in both] == [4096, 4096]


def test_totals_count_recorded_and_planned_runs() -> None:
    plan, _, _ = plan_net(
        "whole", answers={"conv_bn_activation": Offer("k", Work(flops=5, bytes_read=6, bytes_written=7), exact=True)}
    )
    planned, recorded = plan.totals["planned"], plan.totals["recorded"]
    assert (planned["flops"].value, planned["bytes_read"].value, planned["bytes_written"].value) == (5, 6, 7)
    assert planned["calls"].value == 1
    assert recorded["calls"].value == 3
    assert recorded["flops"].value == 2 * 64**3 + 2 * 64 * 64
    assert recorded["seconds"].value > planned["seconds"].value


def test_a_second_request_elects_only_what_it_touches() -> None:
    b = TapeBuilder()
    matches = []
    roots = []
    for _ in range(30):
        x = b.input("x", "f32[256,256]")
        inner = b.op("exp", x)
        root = b.op("neg", inner)
        roots.append((x, inner, root))
    tape = b.tape(*(root for _, _, root in roots))
    for x, inner, root in roots:
        matches += [match(tape, "softmax", root, {"x": x}), match(tape, "gelu", inner, {"x": x})]
    p = planner(tape, matches)
    assert p.plan(REFERENCE).elected == 30
    assert p.plan(REFERENCE).elected == 0
    changed = p.plan(replace(REFERENCE, observe=(roots[7][1],)))
    assert changed.elected == 1  # what is left of one component; lifted, that component is known
    assert [d.match.root for d in changed.decisions if d.verdict == "blocked"] == [roots[7][2]]


def test_a_kernel_that_one_request_switches_off_is_on_for_the_next() -> None:
    class Tiles(Answers):
        def offer(self, tape: Tape, match: Match, terms: Terms, /) -> Offer | Decline:
            return FREE._replace(kernel="plain" if "winograd" in terms.off else "tiles")

    net = Net()
    tape = net.b.tape(net.out)
    p = Planner(tape, Found(list(net.matches(tape).values())), {"home": Tiles()})
    without = p.plan(replace(REFERENCE, off=frozenset({"winograd"})))
    assert {d.kernel for d in without.taken} == {"plain"}
    assert {d.kernel for d in p.plan(REFERENCE).taken} == {"tiles"}


def test_two_plans_of_one_request_are_equal() -> None:
    net = Net()
    tape = net.b.tape(net.out)
    p = planner(tape, list(net.matches(tape).values()))
    first, second = p.plan(REFERENCE), p.plan(REFERENCE)
    assert replace(first, elected=0) == replace(second, elected=0)
    assert first.decisions == planner(tape, list(net.matches(tape).values())).plan(REFERENCE).decisions


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (replace(REFERENCE, observe=(99,)), "no value %99 to observe; the tape has 8 values"),
        (replace(REFERENCE, ignore=frozenset({5})), "no observation 5 to ignore; the tape has 1"),
        (replace(REFERENCE, ignore=frozenset({0})), "returned output and cannot be ignored"),
        (replace(REFERENCE, machine="h100"), "no machine profile 'h100'"),
        (replace(REFERENCE, consumer="tpu"), "no consumer 'tpu'; use one of home stablehlo"),  # type: ignore[arg-type]
    ],
)
def test_requests_that_cannot_be_planned_say_why(request_: Request, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message.replace("%", "%")) as caught:
        plan_net(request=request_)
    assert caught.value.code == "TP504"


def test_what_is_only_told_is_decided_and_not_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    net.b.observe(net.biased, "biased")
    tape = net.b.tape(net.out)
    p = planner(tape, list(net.matches(tape).values()))
    decisions = p.plan(REFERENCE).decisions

    def never(*_: object) -> None:
        raise AssertionError("nobody runs what another consumer decides")

    monkeypatch.setattr("topos_core.plan.planner.units", never)
    assert p.decide(REFERENCE).decisions == decisions
    with pytest.raises(ConfigurationError, match="no consumer 'tpu'"):
        p.decide(replace(REFERENCE, consumer="tpu"))  # type: ignore[arg-type]


def test_a_plan_is_put_in_order_when_somebody_reads_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    tape = net.b.tape(net.out)
    p = planner(tape, list(net.matches(tape).values()))
    orders: list[Any] = []

    def watched(*asked: Any) -> Schedule:
        orders.append(asked)
        return schedule(*asked)

    monkeypatch.setattr("topos_core.plan.plan.schedule", watched)
    data = p.plan(REFERENCE)
    assert orders == []
    assert data.schedule is data.schedule
    assert data.liveness.peak_bytes > 0
    assert len(orders) == 1
