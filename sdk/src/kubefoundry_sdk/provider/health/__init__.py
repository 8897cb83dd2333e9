"""Whether a deployment that its upstream reports as ready serves, and why pods do not start."""
