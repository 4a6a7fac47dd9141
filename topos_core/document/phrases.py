"""Every sentence that people read, worded once: verdict first, one reason, one number with its basis, one action.

Lower case, no full stop. Arguments are display-ready; nothing here looks at a tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, assert_never

from topos_core.document.figures import basis, figure

if TYPE_CHECKING:  # servers say these sentences, and load no NumPy
    from topos_core.plan.decision import Number, Outbid
    from topos_core.tape.tape import ObservationKind

_READERS: Final[dict[ObservationKind, str]] = {
    "output": "the caller (it is returned)",
    "observe": "`tp.observe`",
    "print": "a print",
    "item": "`.item()`",
    "hook": "a forward hook",
    "kept": "a kept reference",
}


# -- headlines and reasons


def headline(title: str, verdict: str) -> str:
    """Heads a region: what was recognised, then the verdict."""
    return f"{title}: {verdict.replace('_', ' ')}"


def taken(consumer: str, kernel: str, calls: int) -> str:
    """Says what a taken region became."""
    if consumer == "stablehlo":
        return f"taken: becomes {kernel}"
    return f"taken: one kernel instead of {calls} call{'' if calls == 1 else 's'}"


def blocked(value: str, reader: str, more: int) -> str:
    """Says which value of a blocked region is read, and by whom."""
    others = f", and {more} more reader{'s' if more > 1 else ''}" if more else ""
    return f"blocked: {value} is read by {reader}{others}; the faster form never makes it"


def blocked_finding(title: str, value: str, reader: str, *, asked: bool = False) -> str:
    """Heads the finding at the reader's line, or at the value's where only a question reads it."""
    return f"blocked: {title} cannot run as one because {value} is read by {reader}{'' if asked else ' here'}"


def declined_finding(title: str, reason: str) -> str:
    """Heads the finding of a declined region, whose reason alone does not say what was declined."""
    return f"declined: {title}, because {reason.removeprefix('declined: ')}"


def reader(kind: ObservationKind, name: str | None, *, asked: bool = False) -> str:
    """Names a reader by its kind and by what it called the value, where that says more; `asked`: no line of it reads."""
    if asked:
        return "this question alone"
    text = _READERS[kind]
    return f"{text} {name}" if name and kind in ("hook", "kept") else text


def shared(value: str, op: str, place: str) -> str:
    """Says who else reads a computed inner value."""
    return f"declined: {value}, computed inside, is also read by {op} at {place}"


def waits_for_itself(name: str, op: str, place: str) -> str:
    """Says that a region would have to run before itself."""
    return f"declined: {op} at {place} reads its result {name} and feeds the region again"


def cost(before: Number, after: Number, machine: str) -> str:
    """Puts the two predicted times side by side."""
    return (
        f"declined: the kernel is predicted to take {figure(after)}, the recorded ops {figure(before)}"
        f" ({basis(before, machine)})"
    )


def left(groups: Sequence[tuple[str, int]], machine: str) -> str:
    """Counts the groups of ops that nothing else names and that run as recorded, because that is as fast."""
    counted = ", ".join(name if count == 1 else f"{name} {repeats(count)}" for name, count in groups)
    return f"as recorded: {counted}, since no kernel is predicted to be faster (modelled, {machine})"


def unlisted(count: int) -> str:
    """Says how many declined regions are counted but not listed."""
    runs = "runs as fast as recorded and is" if count == 1 else "run as fast as recorded and are"
    return f"{count} of the declined {runs} not listed"


def stays_finite(way: Literal["shift", "f32"]) -> str:
    """Says where a kernel gives numbers although the recorded ops give none."""
    if way == "shift":
        return "where exp overflows or vanishes as recorded (inf or NaN), the kernel's result is finite: it subtracts the largest first"
    return (
        "where a recorded f16 step overflows (inf or NaN), the kernel's result may be finite: it keeps its steps in f32"
    )


def standing_at(region: str, place: str) -> str:
    """Names a region and where it ends."""
    return f"{region} at {place}"


def outbid(winner: str, why: Outbid, machine: str) -> str:
    """Says which region is chosen on a declined one's ops, how many more are, and what decided between them and it."""
    several, theirs, own = why.regions > 1, why.theirs, why.own
    who = f"{winner} and {why.regions - 1} more" if several else winner
    share, have, together = ("share", "are", " together") if several else ("shares", "is", "")
    match why.by:
        case "ops":
            assert theirs is not None
            assert own is not None
            told = f"cover{'' if several else 's'} more{together}: {figure(theirs)}, it {figure(own)}"
        case "seconds" | "even":
            assert theirs is not None
            assert own is not None
            even = f"cover{'' if several else 's'} as many and " if why.by == "even" else ""
            told = f"{even}save{'' if several else 's'} more{together}: {figure(theirs)}, it {figure(own)} ({basis(own, machine)})"
        case "order":
            told = f"{have} worth as much{together} and end{'' if several else 's'} earlier"
        case "listed":
            return f"declined: {who} covers the same ops, and its pattern is listed first"
        case "aside":
            told = f"{have} chosen before another region that covers the same as it and is listed first"
        case "first":
            told = f"{have} chosen before what only groups ops"
        case "cycle":
            return f"declined: it and {who} would wait for each other, and it is worth no more"
        case _:
            assert_never(why.by)
    return f"declined: {who} {share} ops with it and {told}"


def switched_off(pattern: str) -> str:
    """Says that somebody switched the pattern off."""
    return f"declined: {pattern} is switched off here"


def declined(reason: str) -> str:
    """Passes on what a consumer gave as its reason."""
    return f"declined: {reason}"


def near_miss(sentence: str) -> str:
    """Passes on what differs."""
    return f"near miss: {sentence}"


def kept(name: str, title: str) -> str:
    """Notes that an observed value is a named result."""
    return f"kept: {name} is a named result of the {title}, which is taken and writes it back"


def inside_other(title: str, reason: str) -> str:
    """Says that another consumer runs a match as part of a larger one."""
    return f"part of {title}, {reason}"


# -- details: further sentences, most useful first


def saves(benefit: Number, before: Number, machine: str) -> str:
    """Says what a taken region is predicted to save."""
    return f"saves about {figure(benefit)} of {figure(before)} ({basis(benefit, machine)})"


def would_save(benefit: Number, before: Number, machine: str) -> str:
    """Says what a region that may not or does not run is predicted to save."""
    if benefit.value <= 0:
        return f"it would save no time ({basis(benefit, machine)})"
    return f"it would save about {figure(benefit)} of {figure(before)} ({basis(benefit, machine)})"


def would_cost(price: Number, machine: str) -> str:
    """Says what an observation is predicted to cost."""
    if price.value <= 0:
        return f"reading it costs no time ({basis(price, machine)})"
    return f"reading it costs about {figure(price)} per run ({basis(price, machine)})"


def traffic(before: Number, after: Number, read: Number, written: Number) -> str:
    """Compares memory traffic; where it rises, says what is `read` and `written` more, as far as it is more."""
    moved = f"moves {figure(after)} instead of {figure(before)} ({after.basis})"
    if after.value <= before.value:
        return moved
    more = [f"{verb} {figure(each)} more" for verb, each in (("reads", read), ("writes", written)) if each.value > 0]
    return f"{moved}: it {listed(more)}, which its predicted time counts"


def one_by_one(calls: int) -> str:
    """Says what runs in place of a region that is not taken."""
    return "its one op runs as recorded" if calls == 1 else f"its {calls} ops run one by one"


def source_runs_nowhere() -> str:
    """Says why a source is in no group."""
    return "it exists before a run and belongs to no group"


def nothing_runs_there() -> str:
    """Says why an op is in no group."""
    return "nothing runs there: no result and no observation needs it"


def alone() -> str:
    """Says why an op is a group of its own."""
    return "it runs alone: no neighbour can share its loops"


def no_nest() -> str:
    """Says what a group still lacks."""
    return "no loop nest is generated for these; they run one by one, as recorded"


def nest_not_run(reason: str) -> str:
    """Says why the loops that could run some ops do not."""
    return f"not run: {reason.partition(': ')[2]}"


def kernel_in_place_of_nest() -> str:
    """Says what stands in place of a generated loop nest."""
    return "one kernel that was written by hand runs it"


def where_kernels_stand() -> str:
    """Says, where the viewer is not, where such a kernel's text is shown."""
    return "`topos view` shows its text under Kernel"


def raised_in_place_of_nest() -> str:
    """Says why what is emitted has no loops here."""
    return "no loops are made of it here: it is emitted as a whole"


def taken_inside(titles: Sequence[str]) -> str:
    """Says what smaller regions run in a blocked one's place."""
    return f"in its place runs {listed(titles)}, and the rest op by op"


def writes_back(names: Sequence[str]) -> str:
    """Lists named results that are made too."""
    return f"writes back {listed(names)}"


def contains(names: Sequence[str]) -> str:
    """Lists smaller matches inside."""
    return f"contains {listed(names)}"


def error_bound(relative: float, absolute: float, probe: str) -> str:
    """States the measured envelope of a fast kernel."""
    return f"error against float64 at most {relative:.1e} relative plus {absolute:.1e} (measured on {probe})"


def certified(answer: str, reason: str, samples: int, assumed: Sequence[str]) -> str:
    """Says what algebra says of a match: that its formula is what was recorded, that it is not, or why that cannot be said."""
    if answer == "true":
        names = listed([f"`{name}`" for name in assumed])
        left_open = f", with {names} left open" if assumed else ""
        return f"its formula is what was recorded: equal by algebra in {samples} elements{left_open}"
    if answer == "false":
        return f"its formula is not what was recorded: {reason}"
    return f"algebra cannot say whether its formula is what was recorded: {reason}"


def not_further(pattern: str, sentence: str) -> str:
    """Says why a match did not take in more."""
    return f"no further as {pattern}: {sentence}"


def held(steps_held: int, steps: int, expected: str, found: str) -> str:
    """Says how near a near miss came and what the first difference is."""
    return f"{steps_held} of the pattern's {steps} steps held; expected {expected}, found {found}"


def over_path(path: Sequence[str]) -> str:
    """Lists the values between the inner value and the reader."""
    return "read over " + " -> ".join(path)


def read_together(places: Sequence[str]) -> str:
    """Says who else has to stop reading before anything is gained."""
    return f"its inside is read at {listed(places)} too: the cost ends when all of these readings end"


def would_block(value: str, reader: str) -> str:
    """Says that a declined region has an observation inside too."""
    return f"{value}, which it never makes, is read by {reader}: that would block it if it were not declined"


def blocks_nothing(declined: Sequence[str]) -> str:
    """Says that an observation costs nothing, and which regions that are declined anyway it would block."""
    if not declined:
        return "blocks nothing"
    make, are = ("makes", "is") if len(declined) == 1 else ("make", "are")
    return f"blocks nothing: {listed(declined)}, which never {make} it, {are} declined anyway"


def assumed() -> str:
    """Says that nobody could decide whether the value is read."""
    return "assumed: whether it is read could not be decided from outside"


def also(count: int) -> str:
    """Counts further regions with the same finding at the same place."""
    return f"the same holds for {count} more region{'s' if count > 1 else ''} at this place"


def spared(size: Number) -> str:
    """Says what a region does not copy, since another kernel wrote it where this one reads it."""
    return f"its image was written in planes, zeros around it: {figure(size)} are not copied"


def layouts(count: int, size: Number) -> str:
    """Says the same of all regions."""
    images = "1 image lies" if count == 1 else f"{count} images lie"
    return f"{images} in planes, zeros around them: {figure(size)} are not copied (counted)"


def repeats(count: int) -> str:
    """Counts places with the same story."""
    return f"x{count}"


# -- related places


def made_here() -> str:
    """Labels the observed value's own line."""
    return "the value is made here"


def read_too() -> str:
    """Labels another reader of the same region's inside."""
    return "its inside is read here too"


def region_here(title: str) -> str:
    """Labels the region's root."""
    return f"the {title} ends here"


def read_here(op: str) -> str:
    """Labels another reader."""
    return f"{op} reads it here"


def winner_here(title: str) -> str:
    """Labels the winner of the ops."""
    return f"{title} was chosen here"


def built_here(module: str) -> str:
    """Labels the constructor's call of a module."""
    return f"`{module}` is built here" if module else "the module is built here"


def built_at(modules: Sequence[tuple[str, str]]) -> str:
    """Tells where a region's modules are built: names and places."""
    return "built: " + ", ".join(f"`{module}` at {place}" if module else f"at {place}" for module, place in modules)


def differs_here() -> str:
    """Labels the first difference of a near miss."""
    return "the first difference stands here"


def listed(names: Sequence[str]) -> str:
    """Lists names in a sentence: `a, b and c`."""
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
