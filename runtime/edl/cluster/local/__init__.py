"""Instances as processes of this machine: supervisor, fork server and their messages."""
