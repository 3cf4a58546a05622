"""Commands for models: export, report, training again, serving, and pages in a browser."""
