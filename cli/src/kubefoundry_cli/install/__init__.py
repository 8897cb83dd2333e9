"""Install manifests on a cluster, and remove them."""
