"""The command line `kubefoundry`: what the controllers decide, shown and asked for by the functions they run."""
