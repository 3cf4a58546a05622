"""Commands for programs: running, compiling, checking, and the parts of these."""
