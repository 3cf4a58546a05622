"""Topics of Kafka as sources of `edl.elastic.stream`: the public name of `edl.extensions.elastic.kafka`."""

from edl.extension_loader import name_absence

with name_absence("edl.extensions.elastic"):
    from edl.extensions.elastic.kafka import Topic

__all__ = ["Topic"]
