"""`make images`: OCI images of our components without a container engine, from Debian packages and wheels.

Two builds of the same commit have the same digests, on any machine: versions and hashes are locked, and the locked
interpreter compiles and compresses.
"""
