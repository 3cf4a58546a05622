"""Tables that the compiler itself makes: the models of a data source, one model, the plan of a statement."""
