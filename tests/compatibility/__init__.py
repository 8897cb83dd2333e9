"""The conformance kit, core and the subjects in two versions each: this one and the one before."""
