"""Simulated upstream operators: KAITO, Dynamo and KubeRay as they were recorded. Nothing is ever served."""
