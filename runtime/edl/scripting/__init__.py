"""Jobs started by a call of `edl.train` in a script or a notebook."""
