"""llamastack-providers: external providers of llama-stack, from wheels in an image to a checked configuration.

Runs inside the containers of a pod, on their Python: standard library, PyYAML and packaging only.
"""
