"""What the steps do: users, administrators, and failures of processes and connections."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from typing import Any, Final

from kubefoundry_core.admission import modeldeployments
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk.testing._server.patches import json_patched, merge_patched
from kubefoundry_sdk.testing._server.requests import APPLY, Answer, Request
from kubefoundry_simulators.steps import FAIL_ANNOTATION, FAIL_LABEL
from simulation.link import DISTURBANCES
from simulation.policies import POLICIES, quota, unlisted
from simulation.steps import INVENTED, SPECS, Step
from simulation.world import NAMESPACE, RESTARTED, World
from support.deployments import model_deployment


class Actions:
    """Carries out steps."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tampered: dict[str, float] = {}
        """The last time at which somebody wrote what is ours of a model, by its name."""
        self.policies: set[str] = set()
        """The names of all policies that have begun."""

    def do(self, step: Step) -> None:
        """Carry out a step. A request that is refused, or an object that is missing, is no error."""
        ACTIONS[step.do](self, step)

    def model(self, name: str) -> Object | None:
        """Return a ModelDeployment."""
        return self.world.server.store.get((names.GROUP, names.MODEL_DEPLOYMENTS), (NAMESPACE, name))

    def upstream(self, name: str) -> list[tuple[Kind, Object]]:
        """Return the upstream objects of this name."""
        return [
            (operator.kind, obj)
            for operator in self.world.operators.values()
            for obj in operator.objects()
            if obj["metadata"]["name"] == name
        ]

    def send(
        self,
        method: str,
        kind: Kind,
        name: str,
        body: Any,
        *,
        suffix: str = "",
        by: str = "user",
        **query: str,
    ) -> Answer:
        """Send a request of a user."""
        namespace = None if kind == PROVIDER_CONFIGS else NAMESPACE
        url = path(kind, namespace, None if method == "POST" else name) + suffix
        raw = None if body is None else json.dumps(body).encode()
        content = APPLY if method == "PATCH" else "application/json"
        return self.world.server.answer(
            Request(method, url, {"fieldManager": by, **query}, raw, content, user_agent=by)
        )

    def create(self, step: Step) -> None:
        """Create a model, unless it exists."""
        spec, provider = step.value
        body = model_deployment(step.on, NAMESPACE, SPECS[spec], provider=provider)
        self._admitted("POST", body, None)

    def copy(self, step: Step) -> None:
        """Create a model with a whole spec, and name its provider."""
        spec, provider = step.value
        self._admitted("POST", model_deployment(step.on, NAMESPACE, spec, provider=provider), None)

    def edit(self, step: Step) -> None:
        """Merge a change into the spec of a model."""
        live = self.model(step.on)
        if live is not None:
            spec = merge_patched(live["spec"], step.value)
            self._admitted("PUT", {**live, "spec": spec}, live)

    def _admitted(self, method: str, body: Object, old: Object | None) -> None:
        """Send a write through core's webhooks."""
        request = {
            "uid": "1",
            "kind": {"group": names.GROUP, "kind": names.MODEL_DEPLOYMENT},
            "object": body,
            "oldObject": old,
        }
        answer = modeldeployments.mutate({"request": request})["response"]
        if "patch" in answer:
            body = json_patched(copy.deepcopy(body), json.loads(base64.b64decode(answer["patch"])))
        registered = {
            obj["metadata"]["name"]: obj
            for obj in self.world.server.store.all((names.GROUP, names.PROVIDER_CONFIGS))
        }
        review = modeldeployments.validate({"request": {**request, "object": body}}, registered)
        if review["response"]["allowed"]:
            self.send(method, MODEL_DEPLOYMENTS, body["metadata"]["name"], body)

    def change_metadata(self, name: str, change: Callable[[Object], Object]) -> None:
        """Replace a model with changed metadata."""
        live = self.model(name)
        if live is not None:
            meta = change(copy.deepcopy(live["metadata"]))
            self.send("PUT", MODEL_DEPLOYMENTS, name, {**live, "metadata": meta})

    def delete(self, step: Step) -> None:
        """Delete a model."""
        self.send("DELETE", MODEL_DEPLOYMENTS, step.on, None)

    def annotate(self, step: Step) -> None:
        """Set annotations of a model; None removes one."""

        def change(meta: Object) -> Object:
            annotations = {**(meta.get("annotations") or {}), **step.value}
            return {**meta, "annotations": {name: text for name, text in annotations.items() if text}}

        self.change_metadata(step.on, change)

    def label(self, step: Step) -> None:
        """Let the pods of a model fail in some way, by a label that its provider copies."""

        def change(meta: Object) -> Object:
            labels = {name: text for name, text in (meta.get("labels") or {}).items() if name != FAIL_LABEL}
            return {**meta, "labels": {**labels, **({FAIL_LABEL: step.value} if step.value else {})}}

        self.change_metadata(step.on, change)

    def breaks(self, step: Step) -> None:
        """Let the pods of a model fail in some way."""
        for kind, obj in self.upstream(step.on):
            annotations = {**(obj["metadata"].get("annotations") or {}), FAIL_ANNOTATION: step.value}
            meta = {**obj["metadata"], "annotations": annotations}
            self.send("PUT", kind, step.on, {**obj, "metadata": meta})

    def unfinalize(self, step: Step) -> None:
        """Remove all finalizers of a model."""
        self._tamper(step.on)
        self.change_metadata(step.on, lambda meta: {**meta, "finalizers": []})

    def plant(self, step: Step) -> None:
        """Add a finalizer of a provider that does not exist."""
        self.change_metadata(
            step.on, lambda meta: {**meta, "finalizers": [*meta.get("finalizers", []), INVENTED]}
        )

    def reset(self, step: Step) -> None:
        """Reset the managedFields of a model."""
        self._tamper(step.on)
        self.change_metadata(step.on, lambda meta: {**meta, "managedFields": [{}]})

    def reset_upstream(self, step: Step) -> None:
        """Reset the managedFields of upstream objects."""
        self._tamper(step.on)
        for kind, obj in self.upstream(step.on):
            meta = {**obj["metadata"], "managedFields": [{}]}
            self.send("PUT", kind, step.on, {**obj, "metadata": meta})

    def restore(self, step: Step) -> None:
        """Apply the status as it was exported, as a restore tool does."""
        self._tamper(step.on)
        live = self.model(step.on)
        if live is not None and live.get("status"):
            self._apply_status(step.on, live["status"], "restore")

    def forge(self, step: Step) -> None:
        """Write a wrong status, and release it."""
        self._tamper(step.on)
        if self.model(step.on) is not None:
            self._apply_status(step.on, {"phase": "Running", "message": "by hand"}, "somebody")
            self._apply_status(step.on, None, "somebody")

    def _apply_status(self, name: str, status: Any, by: str) -> None:
        head = {"apiVersion": names.API_VERSION, "kind": names.MODEL_DEPLOYMENT, "metadata": {"name": name}}
        body = {**head, **({"status": status} if status else {})}
        self.send("PATCH", MODEL_DEPLOYMENTS, name, body, suffix="/status", by=by, force="true")

    def drift(self, step: Step) -> None:
        """Change a value that the provider rendered."""
        for kind, obj in self.upstream(step.on):
            changed = copy.deepcopy(obj)
            if kind.kind == "DynamoGraphDeployment":
                for part in changed["spec"]["services"].values():
                    part["replicas"] = 5
            elif kind.kind == "RayService":
                changed["spec"]["serveConfigV2"] = "applications: []"
            else:
                changed.setdefault("resource", {})["count"] = 7
            self._tamper(step.on)
            self.send("PUT", kind, step.on, changed)

    def delete_upstream(self, step: Step) -> None:
        """Delete the upstream objects by hand."""
        for kind, _ in self.upstream(step.on):
            self._tamper(step.on)
            self.send("DELETE", kind, step.on, None)

    def second_owner(self, step: Step) -> None:
        """Put another model of the namespace in front of the owners of the upstream objects."""
        for kind, obj in self.upstream(step.on):
            owner = {
                "apiVersion": names.API_VERSION,
                "kind": names.MODEL_DEPLOYMENT,
                "name": "another",
                "uid": self.world.server.store.all(("", "namespaces"))[0]["metadata"]["uid"],
            }
            owners = [owner, *(obj["metadata"].get("ownerReferences") or [])]
            self.send(
                "PUT", kind, step.on, {**obj, "metadata": {**obj["metadata"], "ownerReferences": owners}}
            )

    def foreign(self, step: Step) -> None:
        """Create an upstream object that is nobody's."""
        if step.value not in self.world.operators:
            return
        kind = self.world.operators[step.value].kind
        meta = {"name": step.on, "namespace": NAMESPACE}
        spec: Object = {}
        if kind.kind == "RayService":
            spec = {"rayClusterConfig": {"headGroupSpec": {"template": {}}}}
        head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
        self.send("POST", kind, step.on, {**head, **({} if kind.kind == "Workspace" else {"spec": spec})})

    def operator_word(self, step: Step) -> None:
        """Report an error that passes, or more pods than requested, as Dynamo does for a moment."""
        for kind, obj in self.upstream(step.on):
            if kind.kind != "DynamoGraphDeployment" or not (obj.get("status") or {}).get("services"):
                continue
            status = copy.deepcopy(obj["status"])
            if step.value == "more":
                for count in status["services"].values():
                    count |= {"replicas": 4, "readyReplicas": 4, "availableReplicas": 4, "updatedReplicas": 4}
            else:
                status["state"] = "failed"
                text = "failed to reconcile: Operation cannot be fulfilled: the object has been modified"
                for condition in status.get("conditions") or ():
                    condition |= {
                        "status": "False",
                        "reason": "failed_to_reconcile_the_resources",
                        "message": text,
                    }
            self.send("PUT", kind, step.on, {**obj, "status": status}, suffix="/status", by="operator")
            self.world.loop.call_later(0.4, self._take_back, kind, step.on, obj["status"])

    def _take_back(self, kind: Kind, name: str, status: Object) -> None:
        for found, obj in self.upstream(name):
            if found == kind:
                self.send("PUT", kind, name, {**obj, "status": status}, suffix="/status", by="operator")

    def rule(self, step: Step) -> None:
        """Give a provider a rule for all models with a GPU, as an administrator does."""
        rules = [
            {"condition": "has(spec.resources.gpu) && spec.resources.gpu.count > 0", "priority": step.value}
        ]
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.PROVIDER_CONFIG,
            "metadata": {"name": step.on},
            "spec": {"selectionRules": rules},
        }
        if self.world.server.store.get((names.GROUP, names.PROVIDER_CONFIGS), ("", step.on)):
            self.send("PATCH", PROVIDER_CONFIGS, step.on, body, by="admin", force="true")

    def unregister(self, step: Step) -> None:
        """Delete the registration of a provider, or all."""
        for name in [step.on] if step.on else self.world.providers:
            self.send("DELETE", PROVIDER_CONFIGS, name, None, by="admin")

    def policy(self, step: Step) -> None:
        """Begin an admission policy or a quota."""
        if step.on == "quota":
            store = self.world.server.store
            self._begin(step.on, quota(lambda place: len(store.all(place.storage))), step.value)
        else:
            self._begin(step.on, POLICIES[step.on], step.value)

    def unlisted(self, step: Step) -> None:
        """Let a provider's upstream kind be unreadable."""
        if step.on in self.world.operators:
            kind = self.world.operators[step.on].kind
            self._begin(f"unlisted {step.on}", unlisted((kind.group, kind.plural)), step.value)
            self._cut_watches(kind)

    def _cut_watches(self, kind: Kind) -> None:
        end = self.world.server.store.break_watches((kind.group, kind.plural))
        self.world.loop.call_later(0.01, end)

    def _begin(self, name: str, policy: Any, seconds: float) -> None:
        self.policies.add(name)
        self.world.server.policies[name] = policy
        self.world.loop.call_later(seconds, self.world.server.policies.pop, name, None)

    def fail(self, step: Step) -> None:
        """Let a later write of a component fail."""
        number, how = step.value
        self.world.links[step.on].failing.append((number, how))

    def crash(self, step: Step) -> None:
        """End a component. It is started again later."""
        self.world.crash(step.on, step.value or RESTARTED)

    def disturb(self, step: Step) -> None:
        """Disturb the connection of a component for a while."""
        self.world.links[step.on].until[step.do] = self.world.loop.time() + step.value

    def operator_down(self, step: Step) -> None:
        """Stop an upstream operator for a while."""
        self.world.operators[step.on].down_until = self.world.loop.time() + step.value

    def wait(self, step: Step) -> None:
        """Do nothing."""

    def _tamper(self, name: str) -> None:
        self.tampered[name] = self.world.loop.time()


ACTIONS: Final[dict[str, Callable[[Actions, Step], None]]] = {
    "create": Actions.create,
    "copy": Actions.copy,
    "edit": Actions.edit,
    "delete": Actions.delete,
    "annotate": Actions.annotate,
    "label": Actions.label,
    "breaks": Actions.breaks,
    "unfinalize": Actions.unfinalize,
    "plant": Actions.plant,
    "reset": Actions.reset,
    "reset-upstream": Actions.reset_upstream,
    "restore": Actions.restore,
    "forge": Actions.forge,
    "drift": Actions.drift,
    "delete-upstream": Actions.delete_upstream,
    "second-owner": Actions.second_owner,
    "foreign": Actions.foreign,
    "operator-word": Actions.operator_word,
    "operator-down": Actions.operator_down,
    "rule": Actions.rule,
    "unregister": Actions.unregister,
    "policy": Actions.policy,
    "unlisted": Actions.unlisted,
    "fail": Actions.fail,
    "crash": Actions.crash,
    **dict.fromkeys(DISTURBANCES, Actions.disturb),
    "wait": Actions.wait,
}
