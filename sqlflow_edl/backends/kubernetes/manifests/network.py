"""Network policies of a job: its pods talk to each other, to name servers and to their data, and to nothing else.

A policy knows addresses and labels, and no host names. So a data source with a name in its URL is its port on any host.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from typing import Literal

from edl.cluster.kubernetes import names
from edl.data.server_url import parse_server
from edl.data.url import SERVERS
from sqlflow_edl.backends.kubernetes.manifests.rendering import Object, render

HTTPS = 443  # of object stores, of MaxCompute, and of the API server's Service
API_SERVER = 6443  # of most API servers themselves, which a policy may see in place of their Service

Destination = tuple[str, tuple[int, ...]]  # range of addresses, empty for any; ports


def policies(
    name: str, first: Literal["master", "program"], metadata: Callable[[str], Object], urls: Iterable[str]
) -> list[Object]:
    """Return the policy of all pods of the job `name`, and one of its master, which calls the API server.

    first: role of the Job's own pod. metadata: of a policy, by its name. urls: of the data sources, the model store and
    the checkpoints; empty ones and folders are ignored.
    """
    destinations = sorted({_destination(url) for url in urls if "://" in url})
    selector = {names.NAME: name}
    common = render(
        "network_policy", metadata=metadata(name), selector=selector, role="", destinations=destinations
    )
    if first != "master":
        return [common]
    api_server = render(
        "network_policy",
        metadata=metadata(f"{name}-master"),
        selector={**selector, names.ROLE: "master"},
        role="master",
        destinations=[("", (HTTPS, API_SERVER))],
    )
    return [common, api_server]


def _destination(url: str) -> Destination:
    """Return where a data source or an object store is. An object store is behind HTTPS, at any address."""
    scheme = url.partition("://")[0].partition("+")[0]
    if scheme not in SERVERS:
        return "", (HTTPS,)
    server = parse_server(url, SERVERS[scheme])
    return _range(server.host.strip("[]")), (server.port or HTTPS,)


def _range(host: str) -> str:
    """Return the range of a single address, empty for a name."""
    try:
        return str(ipaddress.ip_network(host))
    except ValueError:
        return ""
