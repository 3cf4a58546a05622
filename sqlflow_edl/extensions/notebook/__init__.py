"""SQL in the cells of a notebook; `sqlflow_edl.notebook` loads it into IPython."""
