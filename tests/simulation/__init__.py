"""Core, the selector and two providers on one API server in memory, under random edits and faults."""
