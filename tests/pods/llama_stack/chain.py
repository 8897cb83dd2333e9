"""What a pod's containers do before the server, in the real roots of their images, without any cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubefoundry_llamastack.names import EXTRACT, INSTALL, MERGE
from kubefoundry_llamastack.render import tool as placed
from kubefoundry_nodes.kubelet import chroot
from kubefoundry_nodes.kubelet.image import Image
from llamastack_providers import layout, request
from support.provider_pod import Ended, Pod

VOLUMES = (layout.EXTERNAL_PROVIDERS, layout.BASE_CONFIG, layout.CONFIG, layout.EFFECTIVE_CONFIG)


@dataclass(slots=True)
class Chain:
    """folder: where the volumes lie. tool: the zipapp. distribution: image of the last containers."""

    folder: Path
    tool: Path
    distribution: Image
    images: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in VOLUMES:
            volume = self.places.at(path)
            volume.mkdir(parents=True)
            # an emptyDir, which every user of the pod may write
            volume.chmod(0o777)

    @property
    def places(self) -> layout.Layout:
        return layout.Layout(self.folder)

    def install(
        self,
        image: Image,
        provider_id: str,
        api: str = "inference",
        env: Mapping[str, str] | None = None,
        umask: str = "022",
    ) -> Ended:
        """The provider's install container; the first one begins with an empty tree."""
        container = f"{INSTALL}{provider_id}"
        about = {"providerId": provider_id, "api": api, "order": len(self.images)}
        self.images[provider_id] = image.name
        return self._run("install", image, {**about, "container": container}, env, umask)

    def merge(self) -> Ended:
        """extract-config and merge-config."""
        providers = [{"providerId": one, "image": image} for one, image in self.images.items()]
        extracted = self.extract()
        if extracted.code:
            return extracted
        return self._run("merge-config", self.distribution, {"container": MERGE, "providers": providers})

    def extract(self, **env: str) -> Ended:
        return self._run("extract-config", self.distribution, {"container": EXTRACT}, env)

    def preflight(self, *, seconds: int = 60, **env: str) -> Ended:
        about = {"container": "llama-stack", "seconds": seconds}
        return self._run("preflight", self.distribution, about, env)

    def tree(self) -> str:
        """One hash over path, mode and bytes of all that providers have installed."""
        return Pod(self.folder, self.tool).tree()

    def _run(
        self,
        command: str,
        image: Image,
        value: Mapping[str, Any],
        env: Mapping[str, str] | None = None,
        umask: str = "022",
    ) -> Ended:
        message = self.folder / "termination-log"
        message.write_text("")
        message.chmod(0o666)
        binds = {
            **{path: self.places.at(path) for path in VOLUMES},
            placed.ZIPAPP: self.tool,
            layout.TERMINATION_LOG: message,
        }
        words = request.encode({"image": image.name, **value})
        script = f'umask {umask}; exec python3 {placed.ZIPAPP} {command} --input "$@"'
        done: subprocess.CompletedProcess[str] = chroot.run(
            image, ["/bin/sh", "-c", script, "sh", *words], binds, env
        )
        return Ended(done.returncode, done.stdout + done.stderr, message.read_text())
