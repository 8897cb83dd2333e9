"""The writes upstream: the plan, the record of the last apply, drift, and ownership."""
