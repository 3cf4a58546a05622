"""Input pipeline of a worker: rows to blocks of arrays, cached and prefetched."""
