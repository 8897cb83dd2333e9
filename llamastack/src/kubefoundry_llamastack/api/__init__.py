"""The resource LlamaStackDistribution: typed spec and status, and its CRD."""
