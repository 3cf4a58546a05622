"""The worker: one loop that trains, evaluates and predicts.

It never imports a framework: adapters of `edl.frameworks` do. `edl.worker.trainer` and
`edl.worker.inference` run a job.
"""
