"""A selector by cost: of the providers that can serve a model, the one whose GPUs are cheapest.

Prices an hour are in ConfigMap `kubefoundry-prices` of the system namespace: `PROVIDER.GPU` -> price, where GPU is
the resource without its domain (`dynamo.gpu: "2.49"` for nvidia.com/gpu), and `PROVIDER.cpu` for models without one.
A provider without a price is not chosen.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from kubefoundry_sdk.api.kinds import CONFIG_MAPS
from kubefoundry_sdk.runtime.process import Process
from kubefoundry_selector import Choice, Choose, Provider, Request, run

PRICES = "kubefoundry-prices"


def cheapest(asked: Request, candidates: Sequence[Provider], prices: Mapping[str, str]) -> Choice | None:
    """Ties go to the first by name."""
    kind = resource(asked)
    known = {one.name: price(prices.get(f"{one.name}.{kind}")) for one in candidates}
    found = min(((cost, name) for name, cost in known.items() if cost is not None), default=None)
    if found is None:
        return None
    return Choice(found[1], f"cheapest {kind} at {found[0]} an hour → {found[1]}")


def resource(asked: Request) -> str:
    """What is paid for: the last part of the GPU's resource name."""
    return asked.gpu_type.rpartition("/")[2] if asked.on_gpu else "cpu"


def price(text: str | None) -> Decimal | None:
    """None for what is no price: a typing error in the ConfigMap leaves that provider out."""
    try:
        found = Decimal(text or "")
    except InvalidOperation:
        return None
    return found if found.is_finite() and found >= 0 else None


def prepare(process: Process) -> Choose:
    by_name = {"fieldSelector": f"metadata.name={PRICES}"}
    stored = process.watch(CONFIG_MAPS, namespace=process.namespace, selector=by_name)

    def choose(asked: Request, candidates: Sequence[Provider]) -> Choice | None:
        prices = stored.get((process.namespace, PRICES)) or {}
        return cheapest(asked, candidates, prices.get("data") or {})

    return choose


if __name__ == "__main__":
    sys.exit(run(prepare))
