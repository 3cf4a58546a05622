"""Parts of `sqlflow run`: the statements of a command line, their order, their output."""
