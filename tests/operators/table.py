"""Our status beside the operator's own, a row a step."""

from __future__ import annotations

from dataclasses import dataclass

from kubefoundry_sdk._api.kinds import Object
from support.waiting import phase, reason


@dataclass(frozen=True, slots=True)
class Row:
    """seconds: until the step's end was seen. phases: ours, in their order. silent: longest time unanswered."""

    what: str
    seconds: float
    phases: tuple[str, ...]
    ours: str
    theirs: str
    silent: float
    serves: bool


def ours(deployment: Object | None) -> str:
    """Phase, reason of Ready, replicas and message of a ModelDeployment."""
    if deployment is None:
        return "gone"
    status = deployment.get("status") or {}
    replicas = status.get("replicas") or {}
    count = f" {replicas.get('ready', 0)}/{replicas['desired']}" if "desired" in replicas else ""
    return f"{phase(deployment)}/{reason(deployment, 'Ready')}{count} {status.get('message', '')}"


def theirs(service: Object | None) -> str:
    """Ready, serviceStatus, endpoints and applications of a RayService."""
    if service is None:
        return "no RayService"
    status = service.get("status") or {}
    said = {item["type"]: f"{item['status']}/{item['reason']}" for item in status.get("conditions") or ()}
    parts = [f"Ready={said.get('Ready', '-')}", f"endpoints={status.get('numServeEndpoints', 0)}"]
    if said.get("UpgradeInProgress", "").startswith("True"):
        parts.append("UpgradeInProgress")
    for where in ("pending", "active"):
        applications = (status.get(f"{where}ServiceStatus") or {}).get("applicationStatuses") or {}
        parts += [f"{where}:{application.get('status')}" for application in applications.values()]
    if status.get("observedGeneration") != service["metadata"]["generation"]:
        parts.append("generation not observed")
    return " ".join(parts)


def text(rows: dict[str, list[Row]]) -> str:
    """All tests' rows."""
    lines = ["   s  silent  answers  step: our phases; ours at its end; KubeRay's at its end"]
    for test, steps in rows.items():
        lines.append(f"-- {test}")
        for row in steps:
            lines += [
                f"{row.seconds:5.1f} {row.silent:6.1f}  {'yes' if row.serves else 'no':7}  "
                f"{row.what}: {' > '.join(row.phases)}",
                f"{'':24}ours     {row.ours}",
                f"{'':24}KubeRay  {row.theirs}",
            ]
    return "\n".join(lines)
