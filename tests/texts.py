"""Texts of any characters, for tests with examples of hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

# All that UTF-8 has. `st.text()` draws from the same, and finds them out by encoding each: seconds in a new checkout.
CHARACTERS = st.characters(exclude_categories=["Cs"])


def texts(min_size: int = 0, max_size: int | None = None) -> st.SearchStrategy[str]:
    """Texts of so many characters."""
    return st.text(CHARACTERS, min_size=min_size, max_size=max_size)
