"""Random edits of models, the predictions of the command line, and the result in the cluster."""
