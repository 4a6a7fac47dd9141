"""The page's API, `/api/v1`: plans in three tiers, details on demand, what-if, sources, emitted text, events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.exceptions import HTTPException

from topos_web import as_code, differences, export, payloads, side_by_side
from topos_web.events import Hub
from topos_web.payloads import Document, Payload
from topos_web.plans import Plan, PlannerError, Plans

PlanId = Annotated[str, Path(pattern="^[0-9a-f]{8}$", description="names a target; the same in every session")]
Version = Annotated[str, Query(pattern="^[0-9a-f]{8}(@previous)?$", description="a plan, or it before its last save")]
Identifier = Annotated[str, Field(max_length=64, pattern="^[a-z0-9_]+$")]


def _no_boolean(value: Any) -> Any:
    """Refuses `true`, which Python would count as 1."""
    if isinstance(value, bool | str):
        raise ValueError("should be an integer")
    return value


Value = Annotated[int, Field(ge=0, le=2**31), BeforeValidator(_no_boolean)]


class Options(BaseModel):
    """What a plan is asked for; whatever is left out stays as the command line gave it."""

    model_config = ConfigDict(extra="forbid")
    consumer: Literal["home", "stablehlo"] | None = None
    fidelity: Literal["exact", "fast"] | None = None
    machine: Annotated[str, Field(max_length=64)] | None = None
    cost: Literal["model", "always"] | None = None
    dialect: Literal["portable", "xla", "iree"] | None = None
    observe: Annotated[list[Value], Field(max_length=4096)] = []
    ignore: Annotated[list[Value], Field(max_length=4096)] = []
    beside: Annotated[list[Value], Field(max_length=4096)] = []
    off: Annotated[list[Identifier], Field(max_length=256)] = []
    off_at: Annotated[list[tuple[Identifier, Value]], Field(max_length=4096)] = []

    def asked(self) -> dict[str, Any]:
        """Gives only what was asked."""
        return {name: value for name, value in self.model_dump(mode="json").items() if value not in (None, [])}


class Asked(BaseModel):
    """A what-if or an emission: the revision that the page looks at, and the options."""

    model_config = ConfigDict(extra="forbid")
    base: Annotated[int, Field(ge=0, le=2**53, description="the revision of the plan on the page")]
    options: Options = Options()


class AskedChanges(Asked):
    """Whether the curve of live bytes is on the page."""

    liveness: bool = False


class AskedPhases(Asked):
    """Around which value."""

    value: Value


class AskedRegion(Asked):
    """About which region."""

    region: Annotated[str, Field(max_length=256)]


class Problem(BaseModel):
    """Why there is no answer."""

    code: str
    message: str


class Refused(Exception):
    """Ends a request with a problem."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.problem = {"code": code, "message": message}


EMITTED: Final = {"consumer": "stablehlo"}
"""What a plan's own text is emitted under."""

PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": Problem, "description": why}
    for status, why in (
        (400, "not readable"), (401, "no token"), (403, "another host or another site's page"), (404, "no such plan, or it was never traced"),
        (409, "the plan has changed since"), (413, "the body is too large"), (422, "the target cannot do that"),
    )
}  # fmt: skip


def router(plans: Plans, hub: Hub) -> APIRouter:
    """Builds the API over the targets' states."""
    api = APIRouter(prefix="/api/v1", responses=PROBLEMS, dependencies=[Depends(only_known)])

    def traced(plan_id: str, base: int | None = None) -> tuple[Plan, Document]:
        plan = plans.get(plan_id)
        if plan is None or plan.document is None:
            raise Refused(404, "unknown", f"no plan {plan_id} here; list them at api/v1/plans")
        if base is not None and base != plan.revision:
            raise Refused(409, "stale", f"the plan is at revision {plan.revision}, not {base}; load it again")
        return plan, plan.document

    def changed(plan: Plan, document: Document, options: dict[str, Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = _ask(lambda: plans.planner.changes(plan.target, options))
        if found["digest"] != document["digest"]:
            raise Refused(409, "stale", "the file was traced again meanwhile; load the plan again")
        return found

    @api.get("/plans", summary="Every target with its state")
    def listing() -> list[dict[str, Any]]:
        return [_state(plan, plans) for plan in plans.all()]

    @api.get("/plans/{plan_id}/skeleton", summary="What the first paint shows: figures, counts, scopes")
    def skeleton(request: Request, plan_id: PlanId) -> Response:
        plan, document = traced(plan_id)
        return answer(
            request,
            {
                **_state(plan, plans),
                **payloads.skeleton(document),
                "root": plans.planner.root(plan.target),
                "machines": list(plans.planner.machines()),
            },
        )

    @api.get("/plans/{plan_id}/graph", summary="The recorded ops in columns; immutable under its digest")
    def graph(request: Request, plan_id: PlanId, digest: Annotated[str, Query(max_length=64)] = "") -> Response:
        plan, _ = traced(plan_id)
        assert plan.graph is not None
        if digest not in ("", plan.graph.digest):
            raise Refused(409, "stale", f"the graph is {plan.graph.digest} now; load the plan again")
        return _packed(request, plan.graph, immutable=digest != "")

    @api.get(
        "/plans/{plan_id}/renumbered",
        summary="Where the values of the graph before the last save stand now, if anywhere",
    )
    def renumbered(request: Request, plan_id: PlanId, since: Annotated[str, Query(max_length=64)]) -> Response:
        plan, document = traced(plan_id)
        if plan.previous is None or plan.previous_graph != since:
            raise Refused(409, "stale", "the last save did not replace that graph; load the plan again")
        of_before, of_after = differences.numbers(plan.previous, document)
        now = {merged: value for value, merged in enumerate(of_after)}
        return answer(request, {"values": [now.get(merged) for merged in of_before]})

    @api.get(
        "/plans/{plan_id}/regions",
        summary="Regions (packed: templates, and rows that place them), observations, findings, liveness",
    )
    def regions(request: Request, plan_id: PlanId) -> Response:
        plan, _ = traced(plan_id)
        assert plan.regions is not None
        return _packed(request, plan.regions, immutable=False)

    @api.get("/plans/{plan_id}/nodes/{value}", summary="Everything about one op")
    def node(plan_id: PlanId, value: Annotated[int, Path(ge=0, le=2**31)]) -> dict[str, Any]:
        _, document = traced(plan_id)
        if value >= len(document["ops"]["name"]):
            raise Refused(404, "unknown", f"no value {value}; the plan has {len(document['ops']['name'])}")
        return payloads.node(document, value)

    @api.get("/plans/{plan_id}/sources/{index}", summary="A file's text as it was traced, never as it is on disk")
    def source(
        plan_id: PlanId,
        index: Annotated[int, Path(ge=0, le=2**31)],
        previous: Annotated[bool, Query(description="as it was before the last save")] = False,
    ) -> dict[str, Any]:
        document = _version(plans, f"{plan_id}@previous") if previous else traced(plan_id)[1]
        if index >= len(document["sources"]):
            raise Refused(404, "unknown", f"no source {index}; the plan has {len(document['sources'])}")
        return {"path": document["paths"][index], "text": document["sources"][index]}

    @api.post(
        "/plans/{plan_id}/whatif", summary="Plans again under other options; answers what changes, regions packed"
    )
    def whatif(request: Request, plan_id: PlanId, asked: Annotated[AskedChanges, Body()]) -> Response:
        plan, document = traced(plan_id, asked.base)
        options = {**asked.options.asked(), **({"liveness": True} if asked.liveness else {})}
        found = changed(plan, document, options)
        return answer(request, {"base": plan.revision, **payloads.changes(found)})

    @api.post("/plans/{plan_id}/whatif/cancel", summary="Ends the running question about a plan; the plan stays")
    def cancel(request: Request, plan_id: PlanId) -> Response:
        plan, _ = traced(plan_id)
        plans.planner.give_up(plan.target)
        return answer(request, {})

    @api.post(
        "/plans/{plan_id}/ascode",
        summary="What makes the options true: comments that switch patterns off, and the command line for the rest",
    )
    def ascode(request: Request, plan_id: PlanId, asked: Annotated[Asked, Body()]) -> Response:
        plan, document = traced(plan_id, asked.base)
        options, off = asked.options.asked(), asked.options.off
        written: dict[str, Any] = {"edits": [], "nowhere": []}
        if off:
            found = changed(plan, document, options)
            at = options.get("off_at", [])
            written = as_code.comments(
                document, found, off,
                lambda places: changed(plan, document, {**options, **places, "off_at": [*at, *places["off_at"]]}),
            )  # fmt: skip
        return answer(request, {**written, "command": as_code.command(plan.target, options, plans.planner.dims())})

    @api.post("/plans/{plan_id}/emitted", summary="The StableHLO text of the plan under the options")
    def emitted(request: Request, plan_id: PlanId, asked: Annotated[Asked, Body()]) -> Response:
        plan, document = traced(plan_id, asked.base)
        text = _ask(lambda: plans.planner.emit(plan.target, asked.options.asked()))
        if asked.options.asked() in ({}, EMITTED):
            plans.keep_emitted(document, text)
        return answer(request, {"text": text})

    @api.post(
        "/plans/{plan_id}/phases", summary="What runs at a value: recorded ops, the group that they make, its loop nest"
    )
    def phases(request: Request, plan_id: PlanId, asked: Annotated[AskedPhases, Body()]) -> Response:
        plan, _ = traced(plan_id, asked.base)
        return answer(request, _ask(lambda: plans.planner.phases(plan.target, asked.value, asked.options.asked())))

    @api.post(
        "/plans/{plan_id}/kernels",
        summary="The kernels that run a taken region, with their texts and how they are started",
    )
    def kernels(request: Request, plan_id: PlanId, asked: Annotated[AskedRegion, Body()]) -> Response:
        plan, _ = traced(plan_id, asked.base)
        return answer(request, _ask(lambda: plans.planner.kernels(plan.target, asked.region, asked.options.asked())))

    @api.post(
        "/plans/{plan_id}/certificate", summary="What algebra says of a taken region: whether it is what was recorded"
    )
    def certificate(request: Request, plan_id: PlanId, asked: Annotated[AskedRegion, Body()]) -> Response:
        plan, _ = traced(plan_id, asked.base)
        return answer(
            request, _ask(lambda: plans.planner.certificate(plan.target, asked.region, asked.options.asked()))
        )

    @api.get("/plans/{plan_id}/profile", summary="Measurements of the target, as `topos bench --json` wrote them")
    def profile(request: Request, plan_id: PlanId) -> Response:
        plan, _ = traced(plan_id)
        found = plans.profile(plan.target)
        if found is None:
            raise Refused(404, "unknown", f"no profile of {plan.target} here; start topos view with --profile FILE")
        return answer(request, found)

    @api.get("/plans/{plan_id}/export", summary="The plan as one HTML file that works without a server")
    def exported(plan_id: PlanId) -> Response:
        plan, document = traced(plan_id)
        name = re.sub(r"[^\w.-]+", "-", plan.target)
        headers = {"content-disposition": f'attachment; filename="{name}.html"'}
        try:
            emitted, refusal = _emitted(plans, plan_id), None
        except Refused as error:
            emitted, refusal = None, error.problem["message"]
        return Response(export.html(document, emitted, refusal), media_type="text/html; charset=utf-8", headers=headers)

    @api.get("/diff", summary="Two plans in one numbering: partners of ops, and what became of regions")
    def diff(request: Request, a: Version, b: Version) -> Response:
        (before, graph_before), (after, graph_after) = _drawn(plans, a), _drawn(plans, b)
        merged = differences.between(before, after)
        return answer(request, {**merged, "graph_before": graph_before, "graph_after": graph_after})

    @api.get("/diff/sources", summary="The traced texts of two plans, aligned by lines")
    def diff_sources(request: Request, a: Version, b: Version) -> Response:
        return answer(request, side_by_side.sources(_version(plans, a), _version(plans, b)))

    @api.get("/diff/emitted", summary="The StableHLO texts of two plans, aligned by lines")
    def diff_emitted(request: Request, a: Version, b: Version) -> Response:
        before, after = _version(plans, a), _version(plans, b)
        texts = _emitted(plans, a), _emitted(plans, b)
        return answer(request, [side_by_side.emitted(*texts, *differences.numbers(before, after))])

    @api.get("/events/poll", summary="The events behind a number, for pages behind a proxy that holds streams back")
    def polled(request: Request, after: Annotated[int | None, Query(ge=0, le=2**53)] = None) -> Response:
        return answer(request, hub.after(after))

    @api.get("/events", summary="Server-sent events: a file was saved, a plan changed, a trace failed")
    def events() -> StreamingResponse:
        plain = {
            "x-accel-buffering": "no",
            "cache-control": "no-cache, no-transform",
        }  # a proxy that packs holds events back
        return StreamingResponse(hub.stream(), media_type="text/event-stream", headers=plain)

    return api


def only_known(request: Request) -> None:
    """Refuses what a request asks in its query and nobody would read; the token is the guard's."""
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    for name, _ in request.query_params.multi_items():
        if name != "token" and name not in known:
            takes = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise Refused(422, "request", f"query.{name[:64]}: no such parameter; {takes}")


def refused(request: Request, error: Exception) -> JSONResponse:
    """Answers a `Refused`."""
    assert isinstance(error, Refused)
    return JSONResponse(error.problem, status_code=error.status)


def unreadable(request: Request, error: Exception) -> JSONResponse:
    """Answers a request that is not as described; names the first fault and where it stands."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return JSONResponse({"code": "request", "message": f"{where}: {first['msg']}".lower()}, status_code=422)


def refused_by_framework(request: Request, error: Exception) -> JSONResponse:
    """Answers what the framework itself refuses: no such path or method, a body that is no JSON."""
    assert isinstance(error, HTTPException)
    body = {"code": "size" if error.status_code == 413 else "request", "message": str(error.detail).lower()}
    return JSONResponse(body, status_code=error.status_code, headers=dict(error.headers or {}))


def _state(plan: Plan, plans: Plans) -> dict[str, Any]:
    document = plan.document
    return {
        "id": plan.id,
        "target": plan.target,
        "revision": plan.revision,
        "graph": plan.graph.digest if plan.graph else None,
        "counts": document["counts"] if document else None,
        "error": plan.error,
        "previous": plan.previous is not None,
        "profile": plans.profile(plan.target) is not None,
    }


def _version(plans: Plans, name: str) -> Document:
    return _drawn(plans, name)[0]


def _drawn(plans: Plans, name: str) -> tuple[Document, str | None]:
    """Gives a version of a plan, and the digest of its graph."""
    plan = plans.get(name.partition("@")[0])
    if plan is not None and name.endswith("@previous") and plan.previous is not None:
        return plan.previous, plan.previous_graph
    if plan is None or name.endswith("@previous") or plan.document is None or plan.graph is None:
        raise Refused(404, "unknown", f"no plan {name} here; list them at api/v1/plans")
    return plan.document, plan.graph.digest


def _emitted(plans: Plans, name: str) -> str:
    """Gives what a version of a plan emits; of one before a save only what was looked at before it."""
    document = _version(plans, name)
    plan = plans.get(name.partition("@")[0])
    assert plan is not None
    text = plans.emitted(document)
    if text is None and name.endswith("@previous"):
        raise Refused(
            404, "unknown", "what was emitted before the last save was not looked at then, and is not there now"
        )
    if text is None:
        text = str(_ask(lambda: plans.planner.emit(plan.target, EMITTED)))
        plans.keep_emitted(document, text)
    return text


def _ask(question: Any) -> Any:
    try:
        return question()
    except PlannerError as error:
        raise Refused(422, str(error.failure["code"]), str(error.failure["message"])) from error


def answer(request: Request, data: Any) -> Response:
    """Answers with JSON, packed where that is accepted."""
    return _response(payloads.payload(data), packs=_packs(request))


def _packed(request: Request, payload: Payload, *, immutable: bool) -> Response:
    etag = f'"{payload.digest}"'
    keep = "private, max-age=31536000, immutable" if immutable else "no-cache"
    headers = {"etag": etag, "cache-control": keep}
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return _response(payload, headers, packs=_packs(request))


def _packs(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _response(payload: Payload, headers: dict[str, str] | None = None, *, packs: bool = False) -> Response:
    if packs and payload.packed is not None:
        packed = {**(headers or {}), "content-encoding": "gzip", "vary": "accept-encoding"}
        return Response(payload.packed, media_type="application/json", headers=packed)
    return Response(payload.body, media_type="application/json", headers=headers)
