"""Who reads a value: what is returned, kept, printed or given to a hook; and what only looks like reading."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import topos_core as tp
from tests.core.importers.torch.check import torch
from topos_core.importers.imported import trace

NET = """\
import logging

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


LOG = []


class Appending(Net):
    def forward(self, x):
        c = self.conv(x)
        LOG.append(c)  # here
        return torch.relu(self.norm(c))


class Assigning(Net):
    def forward(self, x):
        c = self.conv(x)
        self.seen = c  # here
        return torch.relu(self.norm(c))


class Shared(Net):
    found = {}

    def forward(self, x):
        c = self.conv(x)
        Shared.found["c"] = c  # here
        return torch.relu(self.norm(c))


class Replacing(Net):
    seen = None

    def __init__(self):
        super().__init__()
        self.seen = None

    def forward(self, x):
        c = self.conv(x)
        self.seen = c  # here
        return torch.relu(self.norm(c))


class Listing(Net):
    def __init__(self):
        super().__init__()
        self.cache = []

    def forward(self, x):
        c = self.conv(x)
        self.cache.append(c)  # here
        return torch.relu(self.norm(c))


class Counting(Net):
    def __init__(self):
        super().__init__()
        self.figures = {"first": {}}

    def forward(self, x):
        c = self.conv(x)
        self.figures["first"]["mean"] = c.mean()  # here
        return torch.relu(self.norm(c))


class Logging(Net):
    def forward(self, x):
        c = self.conv(x)
        logging.getLogger("nowhere").warning("seen %s", c)  # here
        return torch.relu(self.norm(c))


class Showing(Net):
    def forward(self, x):
        c = self.conv(x)
        print(c)  # here
        return torch.relu(self.norm(c))


class Returning(Net):
    def forward(self, x):
        c = self.conv(x)
        return torch.relu(self.norm(c)), c  # here


class Reading(Net):
    def forward(self, x):
        c = self.conv(x)
        print(c.mean().item())  # here
        return torch.relu(self.norm(c))


class Printing(Net):
    def forward(self, x):
        c = self.conv(x)
        print(f"{c}")  # here
        return torch.relu(self.norm(c))


class Looking(Net):
    def forward(self, x):
        c = self.conv(x)
        print(c.shape, c.dtype)
        self.extents = c.shape
        return torch.relu(self.norm(c))


class Buffered(Net):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(1, 8, 8, 8))

    def forward(self, x):
        c = self.conv(x)
        self.last.copy_(c)  # here
        return torch.relu(self.norm(c))


class Taking(Net):
    def forward(self, x):
        c = self.conv(x)
        self.array = c.detach().cpu().numpy()  # here
        return torch.relu(self.norm(c))


KEPT = []


def before(module, inputs):  # before
    KEPT.append(inputs[0])


def with_keywords(module, inputs, keywords, output):  # with_keywords
    KEPT.append(output)


def keeping(module, inputs, output):  # keeping
    KEPT.append(output)


def deriving(module, inputs, output):  # deriving
    module.top = output.detach().abs().max()


def saving(module, inputs, output):  # saving
    KEPT.append(output.cpu().numpy())


def before_looking(module, inputs):
    assert inputs[0].shape[1] == 3


def looking(module, inputs, output):
    assert output.shape[1] == 8


def doubling(module, inputs, output):
    return output * 2


def hooked(hook):
    net = Net().eval()
    net.conv.register_forward_hook(hook)
    return net


def hooked_before(hook):
    net = Net().eval()
    net.norm.register_forward_pre_hook(hook)
    return net


def hooked_with_keywords(hook):
    net = Net().eval()
    net.conv.register_forward_hook(hook, with_kwargs=True)
    return net


def unhooked(hook):
    net = Net().eval()
    net.conv.register_forward_hook(hook).remove()
    net.conv.register_full_backward_hook(hook)
    return net


def parallel():
    return nn.DataParallel(Net())


def wrapped(wrap, hook, before=None):
    outer = wrap(Net().eval())
    outer.register_forward_hook(hook)
    if before is not None:
        outer.register_forward_pre_hook(before)
    return outer


def distributed(net):
    from torch import distributed

    if not distributed.is_initialized():
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    return nn.parallel.DistributedDataParallel(net)


def twice(net):
    return nn.DataParallel(nn.DataParallel(net))
"""


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("observed")
    (folder / "torch_observed.py").write_text(NET)
    sys.path.insert(0, str(folder))
    import torch_observed

    sys.path.remove(str(folder))
    return torch_observed


def readers(target: Any) -> tuple[list[tuple[str, str | None, int, bool]], set[str]]:
    """Gives kind, name, line and doubt of every reader, and the patterns that it blocks."""
    tape = trace(target, "f32[1,3,8,8]")
    plan = tp.plan(tape, machine="reference")
    found = [
        (each.kind, each.name, tape.locations[each.location].span.line, each.assumed)
        for each in tape.observations
        if each.kind != "output"
    ]
    return found, {decision.match.pattern for decision in plan.blocked}


def line(text: str, after: str = "") -> int:
    lines = NET.splitlines()
    start = next((at for at, each in enumerate(lines) if after in each), 0)
    return 1 + next(at for at, each in enumerate(lines) if at >= start and text in each)


@pytest.mark.parametrize(
    ("name", "kind", "reader"),
    [
        ("Appending", "kept", "LOG"),
        ("Assigning", "kept", "Assigning.seen"),
        ("Shared", "kept", "Shared.found['c']"),
        ("Replacing", "kept", "Replacing.seen"),
        ("Listing", "kept", "Listing.cache"),
        ("Counting", "kept", "Counting.figures['mean']"),
        ("Printing", "print", None),
        ("Showing", "print", None),
        ("Reading", "item", None),
    ],
)
def test_a_value_that_the_module_keeps_or_reads_blocks_at_that_line(
    net: Any, name: str, kind: str, reader: Any
) -> None:
    found, blocked = readers(getattr(net, name))
    assert found == [(kind, reader, line("# here", f"class {name}("), False)]
    assert blocked == {"conv_bn_activation"}


def test_a_logger_that_formats_a_value_reads_it(net: Any) -> None:
    found, blocked = readers(net.Logging)  # the test runner keeps every record, and so reads it too
    assert ("print", None, line("# here", "class Logging("), False) in found
    assert blocked == {"conv_bn_activation"}


def test_a_buffer_that_is_written_keeps_its_value(net: Any) -> None:
    found, blocked = readers(net.Buffered)
    assert [(kind, name) for kind, name, _, _ in found] == [("kept", "last")]
    assert blocked == {"conv_bn_activation"}


def test_a_returned_intermediate_blocks(net: Any) -> None:
    assert readers(net.Returning) == ([], {"conv_bn_activation"})


@pytest.mark.parametrize(("name", "assumed"), [("keeping", False), ("deriving", False), ("saving", True)])
def test_a_hook_that_reads_blocks_and_one_that_cannot_be_decided_says_so(net: Any, name: str, assumed: bool) -> None:
    found, blocked = readers(net.hooked(getattr(net, name)))
    assert found == [("hook", f"conv: {name}", line(f"# {name}"), assumed)]
    assert blocked == {"conv_bn_activation"}


@pytest.mark.parametrize(
    ("make", "name", "module"), [("hooked_before", "before", "norm"), ("hooked_with_keywords", "with_keywords", "conv")]
)
def test_hooks_of_every_kind_are_readers(net: Any, make: str, name: str, module: str) -> None:
    found, blocked = readers(getattr(net, make)(getattr(net, name)))
    assert found == [("hook", f"{module}: {name}", line(f"# {name}"), False)]
    assert blocked == {"conv_bn_activation"}


def test_a_hook_on_every_module_is_a_reader_of_each(net: Any) -> None:
    handle = torch.nn.modules.module.register_module_forward_hook(net.keeping)
    try:
        found, _ = readers(net.Net)
    finally:
        handle.remove()
    assert [(kind, name, place) for kind, name, place, _ in found] == [
        ("hook", "every module: keeping", line("# keeping"))
    ] * 3  # the convolution, the norm and the network


def test_a_hook_that_was_removed_and_one_of_gradients_are_no_readers(net: Any) -> None:
    assert readers(net.unhooked(net.keeping)) == ([], set())


def test_a_wrapper_for_several_devices_is_planned_as_what_each_runs(net: Any) -> None:
    assert readers(net.parallel) == ([], set())


@pytest.mark.parametrize(
    ("wrap", "wrapper"),
    [
        (lambda net: net.distributed, "DistributedDataParallel"),
        (lambda net: torch.nn.DataParallel, "DataParallel"),
        (lambda net: torch.compile, "OptimizedModule"),
        (lambda net: net.twice, "DataParallel"),
    ],
)
def test_hooks_of_a_wrapper_are_readers_and_stay_its_own(net: Any, wrap: Any, wrapper: str) -> None:
    module = net.wrapped(wrap(net), net.deriving)
    own = dict(module._forward_hooks)
    found, _ = readers(module)
    assert found == [("hook", f"{wrapper}: deriving", line("# deriving"), False)]
    assert dict(module._forward_hooks) == own
    assert readers(net.wrapped(wrap(net), net.looking, net.before_looking)) == ([], set())
    found, _ = readers(net.wrapped(wrap(net), net.saving))
    assert found == [("hook", f"{wrapper}: saving", line("# saving"), True)]


def test_a_wrappers_hook_may_change_what_the_module_gives(net: Any) -> None:
    plain = trace(net.Net().eval(), "f32[1,3,8,8]")
    doubled = trace(net.wrapped(torch.nn.DataParallel, net.doubling), "f32[1,3,8,8]")
    assert len(doubled.ops) > len(plain.ops)
    assert [doubled.names[each] for each in doubled.parameters] == [plain.names[each] for each in plain.parameters]


def test_an_array_of_a_traced_value_is_refused_at_its_line(net: Any) -> None:
    with pytest.raises(tp.RecordingError, match="needs the elements of a tensor") as caught:
        trace(net.Taking, "f32[1,3,8,8]")
    assert caught.value.span is not None
    assert caught.value.span.line == line("# here", "class Taking(")


@pytest.mark.parametrize("name", ["looking", "doubling"])
def test_a_hook_that_looks_or_changes_is_no_reader(net: Any, name: str) -> None:
    assert readers(net.hooked(getattr(net, name))) == ([], set())


@pytest.mark.parametrize("name", ["Net", "Looking"])
def test_a_clean_module_has_no_readers(net: Any, name: str) -> None:
    assert readers(getattr(net, name)) == ([], set())


def test_hooks_are_put_back(net: Any) -> None:
    module = net.hooked(net.keeping)
    readers(module)
    assert list(module.conv._forward_hooks.values()) == [net.keeping]


def test_hooks_that_take_the_export_with_them_are_left_out_and_assumed() -> None:
    quantization = pytest.importorskip("torch.ao.quantization", reason="this torch has no torch.ao.quantization")
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
    module.qconfig = quantization.get_default_qconfig("x86")
    tape = trace(quantization.prepare(module), "f32[1,3,8,8]")
    assert {(each.kind, each.assumed) for each in tape.observations if each.kind != "output"} == {("hook", True)}


def test_running_statistics_of_training_are_kept_by_their_names() -> None:
    tape = trace(torch.nn.BatchNorm2d(4).train(), "f32[2,4,6,6]")
    names = [each.name for each in tape.observations if each.kind == "kept"]
    assert sorted(names) == ["num_batches_tracked", "running_mean", "running_var"]


def test_what_runs_while_tracing_is_not_left_patched(net: Any) -> None:
    before = (
        torch.Tensor.__repr__,
        torch.Tensor.__format__,
        torch.nn.Module.__init__,
        torch.nn.Module.register_parameter,
    )
    readers(net.Printing)
    after = (
        torch.Tensor.__repr__,
        torch.Tensor.__format__,
        torch.nn.Module.__init__,
        torch.nn.Module.register_parameter,
    )
    assert before == after
