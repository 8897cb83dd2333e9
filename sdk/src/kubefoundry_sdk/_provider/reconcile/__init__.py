"""The reconcile of a ModelDeployment: its steps, and the report of their result."""
