"""Who may talk to the page's server: token, Host, Origin, size; and what every answer carries."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
FRAMED: Final = (
    "frame-ancestors 'self' vscode-webview: vscode-file:"  # a panel of VS Code, on a desktop or behind its proxy
)
LARGEST_BODY: Final = 256 * 1024
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    code: str
    message: str


def refusal(scope: Scope, token: str, *, framed: bool = False) -> Refusal | None:
    """Judges a request by its headers and query; None where it may pass.

    A valid token waives the Host check, so that the page works behind a proxy; a request that another site's page sends
    is refused even with a token. `framed` lets an editor's page open ours in a frame; who may is in the answer's policy.
    """
    headers = Headers(scope=scope)
    if not _token_matches(scope, headers, token):
        if _address(f"//{headers.get('host', '')}").hostname not in {host.strip("[]") for host in LOOPBACK}:
            return Refusal(403, "host", "the Host header names no loopback address; open the printed URL")
        return Refusal(401, "token", "the token is missing or wrong; open the URL that topos view printed")
    if not _same_origin(headers, ("document", "iframe") if framed else ("document",)):
        return Refusal(403, "origin", "the request comes from another site's page; open the printed URL instead")
    return None


class Guard:
    """Wraps the application: strips a proxy's path prefix, refuses strangers and large bodies, adds the headers."""

    def __init__(self, app: ASGIApp, token: str, files: frozenset[str], *, framed: bool = False) -> None:
        self._app = app
        self._token = token
        self._files = files
        self._framed = framed
        policy = (
            CONTENT_SECURITY_POLICY.replace("frame-ancestors 'none'", FRAMED) if framed else CONTENT_SECURITY_POLICY
        )
        self._headers = {**HEADERS, "content-security-policy": policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers what is refused, and hands the rest on without a proxy's prefix."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refused = refusal(scope, self._token, framed=self._framed)
        if scope["type"] == "websocket":  # the page has none: nobody else may open one either
            await send({"type": "websocket.close", "code": 1008})
            return
        if refused is None and _number(Headers(scope=scope).get("content-length")) > LARGEST_BODY:
            refused = Refusal(413, "size", _too_large())
        if refused is not None:
            answer = JSONResponse({"code": refused.code, "message": refused.message}, status_code=refused.status)
            await answer(scope, receive, _with_headers(send, self._headers))
            return
        path = without_prefix(scope["path"], self._files)
        inner = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(inner, _limited(receive), _with_headers(send, self._headers))


def without_prefix(path: str, files: frozenset[str]) -> str:
    """Gives the path below whatever prefix a proxy left on it; only known files and the API are ever recognised."""
    at = path.rfind("/api/v1/")
    if at >= 0:
        return path[at:]
    name = path.rsplit("/", 1)[1] if "/" in path else ""
    return f"/{name}" if name in files or name == "" else path


def _token_matches(scope: Scope, headers: Headers, token: str) -> bool:
    given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        given.append(bearer.strip())
    return any(hmac.compare_digest(one.encode(), token.encode()) for one in given)


def _same_origin(headers: Headers, opened: tuple[str, ...]) -> bool:
    """Whether the page that sends this is ours: the browser's own word where it gives one, else Origin against Host."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        followed = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") in opened
        return site in ("same-origin", "none") or followed  # a link to the printed URL may stand anywhere
    origin = headers.get("origin")
    if origin is None:
        return True  # no browser page: curl, an editor, a test
    host = _address(origin).netloc
    return host != "" and host in (headers.get("host"), headers.get("x-forwarded-host"))


def _address(text: str) -> SplitResult:
    """Reads an address; one that cannot be read (`//[`) names nobody."""
    try:
        return urlsplit(text)
    except ValueError:
        return SplitResult("", "", "", "", "")


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0


def _too_large() -> str:
    return f"the body is larger than {LARGEST_BODY} bytes"


def _limited(receive: Receive) -> Receive:
    """Counts a chunked body too; who reads it past the limit is refused, as one that says its length is."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > LARGEST_BODY:
                raise HTTPException(413, _too_large())  # FastAPI hands this on; of whatever else it says 400
        return message

    return limited


def _with_headers(send: Send, carried: dict[str, str]) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in carried.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-cache")
        await send(message)

    return sending
