"""Databases and files as data sources, one package or module per kind; each implements `edl.data.source.Source`."""
