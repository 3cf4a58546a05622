"""The one place that holds the version of both packages."""

VERSION = "0.1.0"
