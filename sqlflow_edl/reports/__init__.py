"""Tables that the compiler itself writes: the models of a data source, one model, the plan of a statement."""
