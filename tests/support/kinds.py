"""Kinds of integration tests, in the versions that the stand-in CRDs serve."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk._api.kinds import Kind

WORKSPACES: Final = Kind("kaito.sh", "v1beta1", "workspaces", "Workspace")
GRAPHS: Final = Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment")
RAY_SERVICES: Final = Kind("ray.io", "v1", "rayservices", "RayService")

UPSTREAM: Final = {"kaito": WORKSPACES, "dynamo": GRAPHS, "kuberay": RAY_SERVICES}
"""The upstream kind of each provider."""

QUOTAS: Final = Kind("", "v1", "resourcequotas", "ResourceQuota")
