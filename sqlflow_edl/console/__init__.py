"""The SQL console: statements typed one after another, each with its result below.

    prompt ── text ──▶ shell ──▶ commands, or statements ──▶ connection.session ──▶ screen

The prompt is there before the compiler and the database driver are loaded: a thread opens the session meanwhile. What
is offered while somebody types comes from a thread, too: `context` says where in a statement the cursor is, `offers`
what can stand there, by the tables that check statements and by the `catalog` of the data source.
"""
