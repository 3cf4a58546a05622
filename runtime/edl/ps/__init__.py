"""Parameter servers: a model's parameters and embedding rows, spread over processes and updated by pushed gradients.

    messages           calls of a server and their answers
    wire               encoding of a call: a small header and raw arrays
    partitioning       assignment of parameters and rows to servers
    channel, peers     client side of a call, and its errors; calls of server 0 to the other servers

    servicer           gRPC service                            server      implementation of each call
    replica            a server from one Arrange to the next   store       its parameters (dense) and rows (RowTable)
    locks              many pushes at once, or one checkpoint  push_log    workers and leases: progress that is applied
    rounds             rounds of sync, without clock, threads  update_log  pushes of async since the last checkpoint
    round_coordinator  the rounds at work, on server 0         staleness   of the gradients of async
    checkpoint         snapshots, shard files, manifests and replication in the memory of two servers each

A server never imports a framework or the user's module: workers describe the model (`messages.Definition`).
"""
