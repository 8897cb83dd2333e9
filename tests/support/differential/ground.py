"""Both servers with the same CRDs and namespace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubefoundry_sdk._api.crd import model_deployments, provider_configs
from support.differential.comparison import NAMESPACE
from support.differential.gadgets import GADGETS, PLAIN_GADGETS
from support.differential.servers import InMemory, Real
from support.ground import prepared_plane


@contextmanager
def both(folder: Path) -> Iterator[tuple[Real, InMemory]]:
    """Yield a real server and one in memory."""
    crds = []
    for crd in (GADGETS, PLAIN_GADGETS):
        file = folder / f"{crd['metadata']['name']}.yaml"
        file.write_text(json.dumps(crd))
        crds.append(file)
    memory = InMemory()
    for crd in (GADGETS, PLAIN_GADGETS, model_deployments(), provider_configs()):
        memory.server.install(crd)
    memory.server.create_namespace(NAMESPACE)
    with prepared_plane(folder / "plane", crds) as plane:
        real = Real(plane)
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        real.send("POST", "/api/v1/namespaces", {}, body, "application/json")
        yield real, memory
