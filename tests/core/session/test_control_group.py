"""Control groups are made where the tree belongs to the user, and nowhere else."""

import os

import pytest

from topos_core.session.control_group import enter, make_control_group

OWN = "0::/user.slice/app.slice/term.scope\n"


@pytest.fixture
def tree(tmp_path):
    """A folder laid out like a mounted tree, whose new groups get no files by themselves."""
    parent = tmp_path / "user.slice/app.slice"
    (parent / "term.scope").mkdir(parents=True)
    (parent / "cgroup.subtree_control").write_text("cpu memory pids\n")
    (parent / "cgroup.procs").write_text("")
    return tmp_path


def check(tree, own=OWN):
    return make_control_group("topos-1", 2**30, mount=str(tree), own=own)


def test_a_group_is_made_beside_our_own_with_its_limit(tree):
    group = check(tree)
    assert group.folder == str(tree / "user.slice/app.slice/topos-1")
    assert (tree / "user.slice/app.slice/topos-1/memory.max").read_text() == str(2**30)
    assert enter(group, 123)
    assert (tree / "user.slice/app.slice/topos-1/cgroup.procs").read_text() == "123"


def test_the_kernels_count_of_memory_kills_is_read(tree):
    group = check(tree)
    assert not group.was_out_of_memory()
    events = tree / "user.slice/app.slice/topos-1/memory.events"
    events.write_text("low 0\nmax 7\noom 1\noom_kill 0\n")
    assert not group.was_out_of_memory()
    events.write_text("low 0\nmax 7\noom 1\noom_kill 1\n")
    assert group.was_out_of_memory()


def test_no_group_is_made_without_the_memory_controller(tree):
    (tree / "user.slice/app.slice/cgroup.subtree_control").write_text("cpu pids\n")
    assert check(tree) is None
    assert not (tree / "user.slice/app.slice/topos-1").exists()


@pytest.mark.parametrize(
    "own", ["", "0::/\n", "0::/../escape/x\n", "4:memory:/x\n"], ids=["none", "top", "outside", "version 1"]
)
def test_no_group_is_made_at_the_top_or_outside_of_the_tree(tree, own):
    assert check(tree, own) is None


def test_no_group_is_made_where_processes_may_not_be_moved(tree):
    os.remove(tree / "user.slice/app.slice/cgroup.procs")
    assert check(tree) is None
