"""The provider `kuberay`: KubeRay's resource RayService with Ray Serve LLM."""
