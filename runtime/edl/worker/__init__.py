"""The worker: one loop that trains, evaluates and predicts.

It never imports a framework: adapters of `edl.nn` do. `edl.worker.training` and `edl.worker.inference` run a job.
"""
