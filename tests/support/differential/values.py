"""Random objects and parts of objects, mostly valid, for each kind of the differential test."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

Content = dict[str, Any]

WRONG: Final = 0.03
"""Share of values of a wrong type, null, or out of bounds."""


class Values:
    """Draws values from a random generator."""

    def __init__(self, random: Random, *, small: bool = False, unknown: bool = True) -> None:
        """Prepare to draw.

        Args:
            random: The generator.
            small: Whether to draw no number that 32 bits cannot hold.
            unknown: Whether to draw fields that no schema declares.
        """
        self.random = random
        self.unknown = unknown
        self.small = small

    def some(self, **makers: Callable[[], Any]) -> Content:
        """Return a map with a random selection of these fields."""
        share = self.random.choice((0.15, 0.35, 0.7))
        chosen = {name: make() for name, make in makers.items() if self.random.random() < share}
        if self.random.random() < WRONG and chosen:
            chosen[self.random.choice(list(chosen))] = self.wrong()
        if self.random.random() < WRONG / 3 and self.unknown:
            chosen["unheard"] = self.text()
        return chosen

    def wrong(self) -> Any:
        """Return a value that hardly fits."""
        return self.random.choice(
            (
                None,
                None,
                5,
                -1,
                "x",
                "Much Too Long",
                True,
                [],
                {},
                ["a"],
                {"a": "b"},
                1.5,
                *(() if self.small else (2**33,)),
            )
        )

    def text(self) -> str:
        """Return a short text."""
        return self.random.choice(("a", "b", "c", "dd"))

    def number(self) -> int:
        """Return a small number."""
        return self.random.choice((0, 1, 2, 3, 7))

    def one(self, *choices: Any) -> Any:
        """Return one of the values."""
        return self.random.choice(choices)

    def bool(self) -> bool:
        """Return true or false."""
        return self.random.random() < 0.5

    def texts(self, most: int = 3) -> list[str]:
        """Return different texts."""
        return self.random.sample(("a", "b", "c", "dd"), self.random.randint(0, most))

    def mapping(self) -> dict[str, str]:
        """Return a map of texts."""
        return {name: self.text() for name in self.texts()}

    def free(self, depth: int = 2) -> Any:
        """Return any JSON value."""
        kind = self.random.randint(0, 6 if depth else 3)
        if kind <= 3:
            return self.one("a", "b", 1, 2, True, 0.5)
        if kind == 4:
            return [self.free(depth - 1) for _ in range(self.random.randint(0, 2))]
        return {name: self.free(depth - 1) for name in self.texts(2)}

    def by_name(self, make: Callable[[], Content], *, key: str = "name") -> list[Content]:
        """Return items with different names."""
        items = [{key: name, **make()} for name in self.texts()]
        if items and self.random.random() < WRONG:
            items.append(dict(items[0]))
        if items and self.random.random() < WRONG:
            del items[-1][key]
        return items

    def condition(self) -> Content:
        """Return the content of a condition."""
        time = "2026-01-01T00:00:00Z" if self.random.random() > WRONG else "yesterday"
        fields = {
            "status": self.one("True", "False"),
            "lastTransitionTime": time,
            "reason": self.one("A", "B"),
            "message": self.text(),
        }
        return fields if self.random.random() < 0.9 else {"status": "True"}


def gadget(values: Values) -> Content:
    """Return a spec of a Gadget."""
    some = values.some
    return some(
        size=values.number,
        limit=lambda: values.one(1, "2", "50%"),
        note=lambda: values.one("n", None, "mm"),
        word=values.text,
        on=values.bool,
        ratio=lambda: values.one(0.5, 1, 2.25),
        labels=values.mapping,
        whole=lambda: some(x=values.text, y=values.number),
        nested=lambda: some(
            depth=values.number,
            inner=lambda: some(p=values.text, q=lambda: some(r=values.text)),
        ),
        free=lambda: {name: values.free() for name in values.texts()},
        part=lambda: {
            **some(known=lambda: some(k=values.text)),
            **{name: values.free() for name in values.texts(1)},
        },
        words=values.texts,
        names=values.texts,
        items=lambda: values.by_name(
            lambda: some(
                protocol=lambda: values.one("TCP", "UDP"),
                weight=values.number,
                tags=values.texts,
                extra=lambda: some(a=values.text, b=values.text),
            )
        ),
        groups=lambda: {name: some(members=values.texts) for name in values.texts(2)},
    )


def gadget_status(values: Values) -> Content:
    """Return a status of a Gadget."""
    return values.some(
        state=values.text,
        ready=values.number,
        conditions=lambda: values.by_name(values.condition, key="type"),
    )


def model(values: Values) -> Content:
    """Return a spec of a ModelDeployment."""
    some = values.some
    spec = some(
        image=lambda: values.one("example.com/a:1", "example.com/b:2"),
        scaling=lambda: some(replicas=values.number),
        env=lambda: values.by_name(lambda: some(value=values.text)),
        nodeSelector=values.mapping,
        tolerations=lambda: [
            some(key=values.text, operator=lambda: values.one("Exists", "Equal"), value=values.text)
            for _ in values.texts(2)
        ],
        provider=lambda: some(
            name=lambda: "widgets", overrides=lambda: {name: values.free() for name in values.texts(2)}
        ),
        podTemplate=lambda: some(
            metadata=lambda: some(labels=values.mapping, annotations=values.mapping),
            spec=lambda: some(
                serviceAccountName=lambda: values.one("a", "b"),
                imagePullSecrets=lambda: values.by_name(dict),
                volumes=lambda: values.by_name(
                    lambda: {"emptyDir": some(sizeLimit=lambda: values.one("1Gi", 5))}
                ),
                securityContext=lambda: some(fsGroup=values.number, runAsNonRoot=values.bool),
            ),
        ),
        secrets=lambda: some(huggingFaceToken=values.text),
    )
    if values.random.random() < 0.7:
        spec["model"] = {"id": values.one("org/a", "org/b")}
        spec["engine"] = {
            "type": values.one("vllm", "sglang", "llamacpp"),
            **some(
                args=values.mapping, contextLength=lambda: values.one(1024, 2048), trustRemoteCode=values.bool
            ),
        }
        spec["resources"] = {
            "gpu": {"count": values.one(1, 1, 2, 0)},
            **some(memory=lambda: values.one("1Gi", 5), cpu=values.number),
        }
    return spec


def model_status(values: Values) -> Content:
    """Return a status of a ModelDeployment."""
    some = values.some
    return some(
        phase=lambda: values.one("Pending", "Running", "Failed"),
        message=values.text,
        observedGeneration=values.number,
        replicas=lambda: {"desired": 1, **some(ready=values.number, available=values.number)},
        endpoint=lambda: {"service": values.text(), "port": 80},
        provider=lambda: {"name": values.one("widgets", "gadgets")},
        conditions=lambda: values.by_name(values.condition, key="type"),
    )


def provider_config(values: Values) -> Content:
    """Return a spec of an InferenceProviderConfig."""
    some = values.some
    spec = some(documentation=lambda: values.one("https://example.com/a", "https://example.com/b"))
    if values.random.random() < 0.8:
        spec["capabilities"] = {
            "engines": ["vllm", *values.one([], ["sglang"])],
            "servingModes": ["aggregated"],
            "cpuSupport": values.bool(),
            "gpuSupport": True,
        }
    if values.random.random() < 0.5:
        spec["selectionRules"] = [
            {"condition": values.one("true", "false"), **some(priority=values.number, reason=values.text)}
            for _ in values.texts(2)
        ]
    return spec


def provider_config_status(values: Values) -> Content:
    """Return a status of an InferenceProviderConfig."""
    return values.some(
        ready=values.bool,
        version=values.text,
        lastHeartbeat=lambda: "2026-01-01T00:00:00Z",
        upstreamCRDVersion=values.text,
        flags=values.mapping,
        conditions=lambda: values.by_name(values.condition, key="type"),
    )


def config_map(values: Values) -> Content:
    """Return the content of a ConfigMap."""
    return values.some(data=values.mapping, binaryData=lambda: {"z": "AAAA"} if values.bool() else {})


def deployment(values: Values) -> Content:
    """Return a spec of a Deployment, complete in most cases."""
    some = values.some
    spec = some(
        replicas=values.number,
        revisionHistoryLimit=values.number,
        minReadySeconds=values.number,
        paused=values.bool,
    )
    if values.random.random() < 0.9:
        containers = [
            {
                "name": name,
                "image": values.one("example.com/a:1", "example.com/b"),
                **some(
                    args=values.texts,
                    command=values.texts,
                    env=lambda: [{"name": key, "value": values.text()} for key in values.texts()],
                    ports=lambda: [{"containerPort": port} for port in values.one([80], [80, 81], [])],
                ),
            }
            for name in values.one(("a",), ("a", "b"))
        ]
        spec["selector"] = {"matchLabels": {"app": "x"}}
        spec["template"] = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}}
    return {"spec": spec}


def deployment_status(values: Values) -> Content:
    """Return a status of a Deployment."""
    return values.some(
        observedGeneration=values.number,
        replicas=lambda: 3,
        readyReplicas=lambda: values.one(1, 2),
        conditions=lambda: [
            {"type": name, "status": "True", "reason": values.text()} for name in values.texts(2)
        ],
    )


Maker = Callable[[Values], Content]
