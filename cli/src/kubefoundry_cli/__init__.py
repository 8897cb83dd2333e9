"""The command line `kubefoundry`: shows what the controllers decide by calling the same functions."""
