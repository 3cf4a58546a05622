"""Model registry: its contract, and its storage in tables, append-only tables or object stores."""
