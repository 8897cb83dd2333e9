"""A selector by cost: choose the provider with the cheapest GPUs.

ConfigMap `kubefoundry-prices` of the system namespace has the prices per hour: `PROVIDER.GPU` -> price, where GPU is
the resource without its domain (`dynamo.gpu: "2.49"` for nvidia.com/gpu), and `PROVIDER.cpu` for models without a
GPU. A provider without a price is not chosen.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from kubefoundry_sdk.selector import CONFIG_MAPS, Process
from kubefoundry_selector import Choice, Choose, Provider, Request, run_selector

PRICES = "kubefoundry-prices"


def cheapest(request: Request, candidates: Sequence[Provider], prices: Mapping[str, str]) -> Choice | None:
    """Choose the cheapest provider, the first by name if several have the same price."""
    kind = resource(request)
    costs = {provider.name: price(prices.get(f"{provider.name}.{kind}")) for provider in candidates}
    priced = [(cost, name) for name, cost in costs.items() if cost is not None]
    if not priced:
        return None
    cost, name = min(priced)
    return Choice(name, f"cheapest {kind} at {cost} an hour → {name}")


def resource(request: Request) -> str:
    """Return the resource that has a price: the last part of the GPU's resource name, or `cpu`."""
    return request.gpu_type.rpartition("/")[2] if request.on_gpu else "cpu"


def price(text: str | None) -> Decimal | None:
    """Parse a price. Return None if it is invalid, so that a typing error excludes only one provider."""
    try:
        value = Decimal(text or "")
    except InvalidOperation:
        return None
    return value if value.is_finite() and value >= 0 else None


def prepare(process: Process) -> Choose:
    by_name = {"fieldSelector": f"metadata.name={PRICES}"}
    config_maps = process.watch(CONFIG_MAPS, namespace=process.namespace, selector=by_name)

    def choose(request: Request, candidates: Sequence[Provider]) -> Choice | None:
        prices = config_maps.get((process.namespace, PRICES)) or {}
        return cheapest(request, candidates, prices.get("data") or {})

    return choose


if __name__ == "__main__":
    sys.exit(run_selector(prepare))
