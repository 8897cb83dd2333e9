"""The page for a new model: a form, the same spec as YAML, and the verdict of each provider."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from kubefoundry_cli import creation
from kubefoundry_cli.cluster import Session, namespace_name
from kubefoundry_cli.explanation import Explained
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.model import completed, valid
from kubefoundry_cli.output import as_yaml
from kubefoundry_cli.requested import registered_configs
from kubefoundry_dashboard.form import missing, sections, spec_of, yaml_value
from kubefoundry_dashboard.page import WRITES, opened, page, status_of
from kubefoundry_dashboard.verdict import judge_in_cluster
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.permission import may

routes = web.RouteTableDef()

WHERE: Final = "the YAML"


@dataclass(slots=True)
class Draft:
    """A ModelDeployment that does not exist yet. `problem` is the reason why it is unreadable or invalid."""

    name: str
    namespace: str
    spec: Object = field(default_factory=dict)
    text: str = ""
    problem: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The YAML's metadata without name and namespace."""

    @property
    def obj(self) -> Object:
        """Return the ModelDeployment as an object."""
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.MODEL_DEPLOYMENT,
            "metadata": {"name": self.name, "namespace": self.namespace, **self.metadata},
            "spec": self.spec,
        }

    @property
    def command(self) -> str:
        """Return the terminal command that creates the model."""
        return f"kubectl apply -f - <<'EOF'\n{self.text.rstrip()}\nEOF"


def from_form(filled: Mapping[str, str], namespace: str) -> Draft:
    """Read a draft from form fields. An empty name is derived from the model's id."""
    draft = Draft(filled.get("name", "").strip(), filled.get("namespace", "").strip() or namespace)
    try:
        draft.spec = spec_of(filled)
        namespace_name(draft.namespace)
    except Failure as failure:
        draft.problem = failure.message
    model = str((draft.spec.get("model") or {}).get("id") or "")
    draft.name = draft.name or (creation.name_of(model) if model else "")
    draft.text = as_yaml([{**draft.obj, "apiVersion": names.NEWEST_API_VERSION}])
    return draft


def from_yaml(text: str, namespace: str) -> Draft:
    """Read a draft from YAML, and keep the text as written."""
    draft = Draft("", namespace, text=text)
    try:
        document = yaml_value(text, WHERE)
        if not isinstance(document, dict) or document.get("kind") != names.MODEL_DEPLOYMENT:
            raise Failure(f"{WHERE} is not one ModelDeployment", Exit.USAGE)
        obj = completed(document, WHERE, namespace)
    except Failure as failure:
        draft.problem = failure.message
        return draft
    draft.name, draft.namespace = obj["metadata"]["name"], str(obj["metadata"]["namespace"])
    draft.metadata = {
        key: value for key, value in document["metadata"].items() if key not in ("name", "namespace")
    }
    if isinstance(obj["spec"], dict):
        draft.spec = obj["spec"]
    else:
        draft.problem = f"{WHERE}: spec is not an object"
    return draft


@routes.get("/create")
async def show(request: web.Request) -> web.Response:
    """Show the form, filled from the query."""
    async with opened(request) as session:
        draft = await asyncio.to_thread(from_form, request.query, session.namespace)
        return await _show_draft(request, session, draft)


@routes.post("/create")
async def check(request: web.Request) -> web.Response:
    """Check the submitted draft, and create the model if the form has `do=create`."""
    filled = {key: value for key, value in (await request.post()).items() if isinstance(value, str)}
    async with opened(request) as session:
        text = filled.get("yaml", "").replace("\r\n", "\n")
        creates = filled.get("do") == "create"
        wants_form = filled.get("from", "form") == "form" and not creates
        # Parsing a long text takes seconds. In a thread it does not delay other requests.
        draft = await (
            asyncio.to_thread(from_form, filled, session.namespace)
            if wants_form
            else asyncio.to_thread(from_yaml, text, session.namespace)
        )
        if not creates:
            return await _show_draft(request, session, draft)
        if not request.app[WRITES]:
            raise Failure("this page is read-only: start it with --allow-writes", Exit.FORBIDDEN)
        if draft.problem:
            return await _show_draft(request, session, draft, status=400)
        try:
            valid(draft.obj)
            await creation.create(Session(session.client, draft.namespace), draft.obj)
        except Failure as failure:
            draft.problem = failure.message
            return await _show_draft(request, session, draft, status=status_of(failure))
    raise web.HTTPSeeOther(f"/models/{draft.namespace}/{draft.name}")


async def _show_draft(
    request: web.Request, session: Session, draft: Draft, *, status: int = 200
) -> web.Response:
    judgement: Explained | None = None
    if not draft.problem and not missing(draft.spec):
        try:
            judgement = await judge_in_cluster(session, completed(draft.obj, WHERE))
        except Failure as failure:
            draft.problem = failure.message
    values: dict[str, Any] = {"draft": draft, "sections": sections(draft.spec), "judgement": judgement}
    values["providers"] = await _provider_names(session)
    return page(
        request, "create.html", status=status, may_create=await _may(request, session, draft), **values
    )


async def _provider_names(session: Session) -> list[str]:
    """Return the names of the registered providers; none if the viewer may not list them."""
    try:
        return sorted(str(config["metadata"]["name"]) for config in await registered_configs(session))
    except Failure:
        return []


async def _may(request: web.Request, session: Session, draft: Draft) -> bool:
    """Check whether the page allows writes and the viewer may create models in the draft's namespace."""
    if not request.app[WRITES]:
        return False
    try:
        return await may(session.client, "create", MODEL_DEPLOYMENTS, namespace=draft.namespace)
    except (ApiError, Unreachable):
        return False
