"""MaxCompute as a data source."""
