"""Comments leave out exactly the findings they name, and unused ones are told."""

from topos_core.plan.named import no_pattern
from topos_core.session.entries import find
from topos_core.session.suppression import suppress, unused_suppressions

TEXT = """\
import topos_core
y = f(  # topos: ignore[TP202] slower on purpose
    x,
)
# topos: ignore[TP101, TP201]
z = g(y)
w = h(z)  # topos: ignore[TP101]
"""
COMMENTS = {"model.py": find(TEXT, "/project/model.py").comments}


def finding(code, line, end_line=None, path="model.py"):
    return {"code": code, "path": path, "line": line, "column": 0, "end_line": end_line or line, "end_column": 1}


def check(findings, left):
    found = suppress(findings, COMMENTS)
    assert found.findings == [findings[number] for number in left]
    assert found.count == len(findings) - len(left)
    return found


def test_a_comment_on_any_line_of_the_expression_or_alone_above_it_leaves_its_codes_out():
    check([finding("TP202", 2, 4), finding("TP101", 6), finding("TP201", 6), finding("TP101", 7)], [])


def test_other_codes_other_lines_and_other_files_are_kept():
    check(
        [finding("TP101", 2, 4), finding("TP202", 6), finding("TP202", 4), finding("TP202", 2, 4, "other.py")],
        [0, 1, 2, 3],
    )


def test_a_comment_that_left_nothing_out_is_told_with_its_removal():
    used = check([finding("TP202", 2, 4), finding("TP201", 6)], []).used
    (unused,) = unused_suppressions("model.py", COMMENTS["model.py"], used)
    assert (unused["code"], unused["line"], unused["path"]) == ("TP601", 7, "model.py")
    edit = unused["fix"]["edits"][0]
    assert (edit["column"], edit["end_column"], edit["text"]) == (8, 32, "")


LISTED = """\
import topos_core
y = f(x)  # topos: off[softmax, sofmax]
z = g(y)  # topos: off[sofmax]
w = h(z)  # topos: ignore[TP202, TP999]
"""


def test_a_name_that_is_no_pattern_or_code_is_told_for_itself():
    comments = find(LISTED, "/project/model.py").comments
    said = {"sofmax": no_pattern("sofmax")}
    found = unused_suppressions("model.py", comments, frozenset({("model.py", comments[2])}), frozenset({2}), said)
    assert [(each["line"], each["headline"], [fix["title"] for fix in each["fixes"]]) for each in found] == [
        (2, "no pattern is called 'sofmax'; did you mean softmax or log_softmax?", []),
        (3, "no pattern is called 'sofmax'; did you mean softmax or log_softmax?", ["remove the comment"]),
        (4, "no code is called TP999; write the one that the finding shows", []),
    ]


def test_a_kernel_is_switched_off_for_a_whole_program_only():
    assert no_pattern("winograd").startswith("winograd is no pattern but a kernel")
