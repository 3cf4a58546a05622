"""The master of a job: hands out tasks under leases, writes down what is done, and keeps the workers there.

It imports no framework and no module of the user's, so that it is back within a second.
"""
