"""Messages between a supervisor and the agents of other machines: JSON lines over TLS.

    agent        Join ─▶                     Changed, Heartbeat …
    supervisor        ◀─ Welcome, or Sorry   Start, Stop, Heartbeat …  Ended

After `Welcome` the supervisor sends requests of `edl.cluster.local.messages`; the agent tells every change of an
instance, and answers nothing.
"""

from __future__ import annotations

import msgspec

from edl.build import Build
from edl.cluster.local.messages import Changed, Heartbeat, Start, Stop
from edl.jobs.cluster_folder import RunSpec


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Offer of a machine: its name, the address that its instances announce, and the number that it has room for.

    `proof` shows that the agent knows the join token.
    """

    proof: str
    machine: str
    host: str
    slots: int
    build: Build


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    """Job to take part in: what its instances need. `proof` shows that the supervisor knows the join token.

    `job` is its id, `spec` its JobSpec as JSON. `identity` has the files of `edl.tls` by name.
    """

    proof: str
    job: str
    spec: bytes
    run: RunSpec
    address: str
    token: str
    identity: dict[str, str]


class Sorry(msgspec.Struct, frozen=True, tag="sorry"):
    """Refusal of an offer, for good."""

    why: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """End of the job, with its state."""

    state: str
    error: str = ""


FromAgent = Join | Changed | Heartbeat
ToAgent = Welcome | Sorry | Start | Stop | Heartbeat | Ended

from_agent_decoder: msgspec.json.Decoder[FromAgent] = msgspec.json.Decoder(FromAgent)
to_agent_decoder: msgspec.json.Decoder[ToAgent] = msgspec.json.Decoder(ToAgent)
LONGEST = 4 << 20  # bytes of a line


def to_line(message: FromAgent | ToAgent) -> bytes:
    return msgspec.json.encode(message) + b"\n"
