"""Parameter servers: a model's parameters and embedding rows, spread over processes, and moved by pushed gradients.

    messages   what is said to a server
    wire       how: a small header and raw arrays
    place      which server has which parameter, and which row

A server never imports a framework or the user's module: workers say what the model is (`messages.Definition`).
"""
