"""Write the package of a new provider."""
