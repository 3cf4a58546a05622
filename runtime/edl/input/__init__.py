"""Input pipeline of a model: rows to blocks of arrays, cached and prefetched."""
