"""Import of psycopg, kept apart from TensorFlow.

TensorFlow makes the symbols of its BoringSSL global. The OpenSSL of a libpq that is loaded later would take those that
have the same name, and the first connection with TLS would abort the process. RTLD_DEEPBIND, where symbols are global
(glibc), lets a library prefer its own.
"""

from __future__ import annotations

import os
import sys

_flags = sys.getdlopenflags()
sys.setdlopenflags(_flags | getattr(os, "RTLD_DEEPBIND", 0))
try:
    import psycopg
    from psycopg import generators
    from psycopg.pq import ExecStatus, TransactionStatus
finally:
    sys.setdlopenflags(_flags)

__all__ = ["ExecStatus", "TransactionStatus", "generators", "psycopg"]
