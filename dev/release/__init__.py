"""`make release`: every file of a release in one folder. Two runs on a commit write equal files."""
