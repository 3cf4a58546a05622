"""Built-in models: a module each, with their parameters, inputs, size and values of their templates."""
