"""CEL within bounds, on cel-python (extra `cel`): for selection rules and for mappings."""
