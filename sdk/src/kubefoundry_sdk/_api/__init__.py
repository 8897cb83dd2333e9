"""The custom resources and Kubernetes' own objects: types, rules, and reading of foreign text."""
