"""Databases and files as data sources, one package or module per kind. Each implements `edl.data.source.Source`."""
