"""The provider `direct`: a Deployment and a Service that run the engine's own server."""
