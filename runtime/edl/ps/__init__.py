"""Parameter servers: a model's parameters and embedding rows, spread over processes, and moved by pushed gradients.

    messages   what is said to a server
    wire       how: a small header and raw arrays
    place      which server has which parameter, and which row
    channel    calls to a server, and what they raise

    service    calls of a server over gRPC                     server     what each call does
    term       a server from one Arrange to the next           store      its parameters and rows (dense, RowTable)
    gate       many pushes at once, or one cut alone           book       workers and leases: what of them is in
    rounds     sync, without clock and threads                 lead       sync at work, on server 0 (peers)
    cutting    copies for cuts                                 cuts       cuts on disk (shards)
    neighbours cuts in the memory of two servers each

A server never imports a framework or the user's module: workers say what the model is (`messages.Definition`).
"""
