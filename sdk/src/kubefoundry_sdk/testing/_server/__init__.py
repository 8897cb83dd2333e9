"""An API server in memory: server-side apply, watches, finalizers, and a transport for the real `Client`."""
