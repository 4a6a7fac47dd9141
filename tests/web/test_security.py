from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.web.serving import TOKEN
from topos_web import app, static
from topos_web.agents import AgentPlanner
from topos_web.events import Hub
from topos_web.plans import Plans
from topos_web.security import LARGEST_BODY, without_prefix

MODEL = """\
import numpy as np
import topos_core as tp


@tp.model(x=tp.f32[4, 8])
def main(x):
    return np.tanh(x) * 2.0
"""
PATHS = ["/", "/app.js", "/favicon.svg", "/api/v1/plans", "/api/v1/openapi.json", "/api/v1/events", "/nothing"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("given", ["", "?token=", "?token=wrong", f"?token={TOKEN}x", f"?tokens={TOKEN}"])
def test_every_path_wants_the_token(stranger: TestClient, path: str, given: str) -> None:
    answer = stranger.get(path + given)
    assert answer.status_code == 401
    assert answer.json()["code"] == "token"


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}"])
def test_the_token_may_stand_in_the_header(stranger: TestClient, header: str) -> None:
    assert stranger.get("/api/v1/plans", headers={"authorization": header}).status_code == 200


def test_the_token_may_stand_in_the_query(stranger: TestClient) -> None:
    assert stranger.get(f"/?token={TOKEN}").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil.example:8470", "", "[", "evil:[1"]
)
def test_a_foreign_host_without_a_token_is_told_apart(stranger: TestClient, host: str) -> None:
    answer = stranger.get("/", headers={"host": host})
    assert (answer.status_code, answer.json()["code"]) == (403, "host")


def test_a_token_waives_the_host_so_that_proxies_work(client: TestClient) -> None:
    assert client.get("/api/v1/plans", headers={"host": "code.example:443"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "http://127.0.0.1:8470"}, 200),
        ({"origin": "https://code.example", "x-forwarded-host": "code.example"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:8470"}, 403),
        ({"sec-fetch-site": "same-origin", "origin": "https://code.example"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 403),
    ],
)
def test_another_sites_page_is_refused_even_with_a_token(
    client: TestClient, headers: dict[str, str], status: int
) -> None:
    assert client.get("/api/v1/plans", headers=headers).status_code == status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_only_get_head_and_post_are_offered(client: TestClient, method: str) -> None:
    answer = client.request(method, "/api/v1/plans")
    assert answer.status_code == 405
    assert "access-control-allow-origin" not in answer.headers


def test_no_websocket_is_opened_by_anybody(stranger: TestClient) -> None:
    for headers in ({}, {"origin": "https://evil.example"}, {"authorization": f"Bearer {TOKEN}"}):
        with pytest.raises(WebSocketDisconnect), stranger.websocket_connect("/api/v1/events", headers=headers):
            pass


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml", "/..%2fpyproject.toml", "/%2e%2e/%2e%2e/etc/passwd", "/static/../../etc/passwd", "//etc/passwd",
        "/app.js/../../../etc/passwd", "/..\\..\\etc\\passwd", "/app.js%00.txt", "/index.html", "/layout.worker.js.map",
        "/api/v1/plans/../../../etc/passwd/skeleton", "/api/v1/plans/00000000/sources/..%2f..%2fetc%2fpasswd",
    ],
)  # fmt: skip
def test_no_path_reaches_the_disk(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (404, 422)
    assert "root:" not in answer.text


def test_sources_come_from_the_trace_and_never_from_disk(client: TestClient, plans: object) -> None:
    plan = client.get("/api/v1/plans").json()[0]
    source = client.get(f"/api/v1/plans/{plan['id']}/sources/0").json()
    assert source["path"] == "examples/convolution.py"  # no such file exists
    assert "sliding_window_view" in source["text"]


def test_a_link_in_place_of_a_traced_file_shows_nothing_of_what_it_names(tmp_path: Path) -> None:
    """A file that was traced is replaced by a symbolic link to one that nobody asked for, with and without a new trace."""
    (tmp_path / "secret").write_text("the secret of another folder\n")
    model = tmp_path / "project" / "model.py"
    model.parent.mkdir()
    model.write_text(MODEL)
    planner = AgentPlanner([str(model)])
    try:
        plans = Plans(planner)
        plans.refresh()
        with TestClient(app.build(plans, Hub(), TOKEN, static.load()), base_url="http://127.0.0.1:8470") as client:
            client.headers["authorization"] = f"Bearer {TOKEN}"
            (plan,) = client.get("/api/v1/plans").json()
            model.unlink()
            model.symlink_to(tmp_path / "secret")
            source = f"/api/v1/plans/{plan['id']}/sources/0"
            assert client.get(source).json() == {"path": "model.py", "text": MODEL}
            plans.refresh()
            (failed,) = client.get("/api/v1/plans").json()
            assert failed["error"] is not None
            assert client.get(source).json() == {"path": "model.py", "text": MODEL}
            for path in ("graph", "regions", "skeleton", "export"):
                assert "secret of another" not in client.get(f"/api/v1/plans/{plan['id']}/{path}").text
            assert "secret of another" not in client.get("/api/v1/plans").text
    finally:
        planner.close()


@pytest.mark.parametrize("path", ["/", "/app.js", "/nothing", "/api/v1/plans", "/api/v1/plans/ffffffff/skeleton"])
def test_every_answer_carries_the_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["worker-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.fixture
def framed(client: TestClient, plans: Plans) -> TestClient:
    """Gives a client of a server whose page VS Code may show in a panel."""
    application = app.build(plans, Hub(), TOKEN, static.load(), framed=True)
    return TestClient(application, base_url="http://127.0.0.1:8470", headers=client.headers)


IN_FRAME = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}


def test_only_an_editor_may_hold_the_page_in_a_frame_and_only_when_asked(
    client: TestClient, framed: TestClient
) -> None:
    assert client.get("/", headers=IN_FRAME).status_code == 403
    answer = framed.get("/", headers=IN_FRAME)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert policy.endswith("; frame-ancestors 'self' vscode-webview: vscode-file:")
    assert policy.count("frame-ancestors") == 1
    assert framed.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-dest": "empty"}).status_code == 403
    assert framed.get("/", headers={**IN_FRAME, "authorization": "Bearer wrong"}).status_code == 401


def test_a_refusal_carries_the_headers_too(stranger: TestClient) -> None:
    assert "default-src 'none'" in stranger.get("/").headers["content-security-policy"]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_body_is_refused(client: TestClient, chunked: bool) -> None:
    plan = client.get("/api/v1/plans").json()[0]["id"]
    body = b'{"base": 1, "options": {"observe": [' + b"1," * LARGEST_BODY + b"1]}}"
    sent = (body[i : i + 65536] for i in range(0, len(body), 65536)) if chunked else body
    headers = {"content-type": "application/json"}
    answer = client.post(f"/api/v1/plans/{plan}/whatif", content=sent, headers=headers)
    assert (answer.status_code, answer.json()) == (
        413, {"code": "size", "message": f"the body is larger than {LARGEST_BODY} bytes"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("path", "inner"),
    [
        ("/", "/"), ("/proxy/8470/", "/"), ("/a/b/app.js", "/app.js"), ("/absproxy/1/api/v1/plans", "/api/v1/plans"),
        ("/a/other.js", "/a/other.js"), ("/api/v1/x/api/v1/plans", "/api/v1/plans"), ("", "/"),
    ],
)  # fmt: skip
def test_a_proxys_prefix_is_stripped(path: str, inner: str) -> None:
    assert without_prefix(path, frozenset({"app.js"})) == inner


def test_the_page_works_below_a_prefix(client: TestClient) -> None:
    page = client.get("/absproxy/8470/")
    assert page.status_code == 200
    assert client.get("/absproxy/8470/app.js").headers["content-type"].startswith("text/javascript")
    assert 'src="/' not in page.text  # every reference is relative, so the prefix stays
    assert 'href="/' not in page.text
    assert client.get("/absproxy/8470/api/v1/plans").status_code == 200
