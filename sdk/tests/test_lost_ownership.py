"""Objects whose managedFields no longer name us are applied again, though no value differs."""

from __future__ import annotations

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.write.lost_ownership import PATH, with_repairs
from kubefoundry_sdk._provider.write.plan import Plan
from support.plans import deployment, planned

MANAGER = "example-provider"


def with_manager(obj: Object, manager: str = MANAGER, fields: Object | None = None) -> Object:
    entry = {"manager": manager, "operation": "Apply", "fieldsV1": fields or {"f:spec": {}, "f:data": {}}}
    return {**obj, "metadata": {**obj["metadata"], "managedFields": [entry]}}


def unchanged() -> Plan:
    todo = planned(deployment(), planned(deployment()))
    assert not todo.changed
    return todo


def test_main_object_is_applied_again() -> None:
    todo = unchanged()

    repair = with_repairs(todo, with_manager(todo.main, "before-first-apply"), todo.helpers, MANAGER)

    assert repair.repairs == [(todo.main, (PATH,))]


def test_helper_is_applied_again() -> None:
    todo = unchanged()
    [helper] = todo.helpers

    repair = with_repairs(todo, with_manager(todo.main), [with_manager(helper, "somebody")], MANAGER)

    assert repair.repairs == [(helper, (PATH,))]


def test_emptied_entry_is_applied_again() -> None:
    todo = unchanged()
    emptied = with_manager(todo.main, fields={"f:metadata": {"f:labels": {}}})

    repair = with_repairs(todo, emptied, [with_manager(obj) for obj in todo.helpers], MANAGER)

    assert repair.repairs == [(todo.main, (PATH,))]


def test_nothing_is_written_while_ownership_is_there() -> None:
    todo = unchanged()
    helpers = [with_manager(obj) for obj in todo.helpers]

    assert with_repairs(todo, with_manager(todo.main), helpers, MANAGER) == todo


def test_change_takes_precedence_over_lost_ownership() -> None:
    todo = planned(deployment({"scaling": {"replicas": 2}}), planned(deployment()))

    assert with_repairs(todo, todo.main, todo.helpers, MANAGER) is todo
