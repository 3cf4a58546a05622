"""Data sources, fixed rows, results and job folders. Light to import: databases and Arrow load when they are used."""

from edl.data.source import ConflictError, Pinned, Reader, Source
from edl.data.url import connect, redacted

__all__ = ["ConflictError", "Pinned", "Reader", "Source", "connect", "redacted"]
