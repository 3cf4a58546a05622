"""The worker: one loop that trains, evaluates and predicts, and the task source of a job in a single process.

It never imports a framework: adapters of `edl.nn` do. `edl.worker.training` and `edl.worker.inference` run a job,
`edl.worker.events` and `edl.worker.outcome` say how it goes and ends, and are light to import.
"""
