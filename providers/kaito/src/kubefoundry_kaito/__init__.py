"""The provider `kaito`: KAITO's resource Workspace."""
