"""Settings of jobs on Kubernetes, as rows of the dictionary of attributes.

A statement writes them in WITH, as `kubernetes.image`; a configuration file and the command line omit the prefix.
`sqlflow_edl.backends.kubernetes.settings` merges these sources.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlflow_edl.analysis.settings.dictionary import PLACE, Attribute

USER = 10001  # of the image

_ROLES = {
    "master": ("the master", "0.5", "2", "1Gi"),
    "worker": ("each worker", "1", None, None),
    "ps": ("each parameter server", "1", None, None),
}  # label, processor request and limit, memory request; None: as the request, or by the job's size


def _resources() -> Iterator[Attribute]:
    for role, (who, processors, most, memory) in _ROLES.items():
        size = "" if memory else "; by default by the size of the model"
        yield Attribute(f"{PLACE}{role}_cpu", "processors", f"Processors that {who} asks for.", processors)
        yield Attribute(f"{PLACE}{role}_memory", "memory", f"Memory that {who} asks for{size}.", memory)
        yield Attribute(
            f"{PLACE}{role}_cpu_limit",
            "processors or none",
            f"Processors that {who} may use; by default as many as it asks for.",
            most,
        )
        yield Attribute(
            f"{PLACE}{role}_memory_limit",
            "memory or none",
            f"Memory that {who} may use; by default as much as it asks for.",
        )


KUBERNETES = (
    Attribute(f"{PLACE}context", "text", "Of the kubeconfig; by default the current one."),
    Attribute(
        f"{PLACE}namespace",
        "text",
        "Where the job's objects are made; by default the context's.",
    ),
    Attribute(
        f"{PLACE}image",
        "text",
        "Of every container, as `sqlflow image` builds it; by default sqlflow-edl of this version.",
    ),
    Attribute(
        f"{PLACE}image_pull_policy",
        "text",
        "When nodes fetch the image; by default the cluster's: always for the tag latest, else if it is not there.",
        choices=("Always", "IfNotPresent", "Never"),
    ),
    Attribute(f"{PLACE}image_pull_secrets", "texts", "Names of Secrets for the image's registry."),
    Attribute(
        f"{PLACE}service_account",
        "text",
        "Of the pods; by default one is made for the job, with the rights that its master needs.",
    ),
    *_resources(),
    Attribute(f"{PLACE}worker_gpu", "integer", "GPUs of each worker.", 0, low=0, high=64),
    Attribute(f"{PLACE}gpu_resource", "text", "What the cluster calls a GPU.", "nvidia.com/gpu"),
    Attribute(f"{PLACE}node_selector", "pairs", "Labels of the nodes that may run pods of the job."),
    Attribute(f"{PLACE}tolerations", "taints", "Taints of nodes that pods of the job tolerate."),
    Attribute(f"{PLACE}worker_node_selector", "pairs", "More labels of the nodes that may run workers."),
    Attribute(f"{PLACE}worker_tolerations", "taints", "More taints of nodes that workers tolerate."),
    Attribute(f"{PLACE}priority_class", "text", "Priority class of the pods."),
    Attribute(
        f"{PLACE}low_priority_class",
        "text",
        "Priority class of the workers beyond high_priority_fraction, which are preempted first.",
    ),
    Attribute(
        f"{PLACE}high_priority_fraction",
        "number",
        "Share of the workers, rounded up, that has priority_class; the others have low_priority_class.",
        1.0,
        low=0,
        high=1,
    ),
    Attribute(
        f"{PLACE}volume",
        "text",
        "A PersistentVolumeClaim that every pod mounts, which many may write; checkpoints are kept there.",
    ),
    Attribute(
        f"{PLACE}volume_code",
        "text",
        "A folder of the volume that modules of your own are imported from.",
    ),
    Attribute(
        f"{PLACE}checkpoints",
        "text",
        "Where checkpoints are kept: a URL of an object store, or a folder that the image or the pod template "
        "mounts everywhere; by default the volume, and without one the master's disk.",
    ),
    Attribute(
        f"{PLACE}master_disk",
        "memory",
        "Disk that the master asks for and may use, which bounds the checkpoints that it keeps; by default what its "
        "node has.",
    ),
    Attribute(f"{PLACE}labels", "pairs", "Labels of every object of the job, beside its own."),
    Attribute(f"{PLACE}annotations", "pairs", "Annotations of every object of the job, beside its own."),
    Attribute(
        f"{PLACE}env",
        "pairs",
        "Environment variables of every container. Visible to all who can read pods: no secrets.",
    ),
    Attribute(
        f"{PLACE}run_as_user",
        "integer",
        "User and group that containers run as; 0: the cluster chooses one.",
        USER,
        low=0,
        high=2**31 - 1,
    ),
    Attribute(
        f"{PLACE}ttl_secs",
        "integer",
        "How long the objects of a job stay after its end, for its logs.",
        86_400,
        low=0,
        high=2**31 - 1,
    ),
    Attribute(
        f"{PLACE}master_retries",
        "integer",
        "How often the master may crash until the job fails; when its node is drained does not count.",
        20,
        low=0,
        high=1000,
    ),
    Attribute(
        f"{PLACE}grace_secs",
        "integer",
        "Time that pods have to end after SIGTERM, in seconds.",
        60,
        low=1,
        high=3600,
    ),
    Attribute(
        f"{PLACE}pending_secs",
        "number",
        "How long a parameter server may wait for a node until a worker stands in for it.",
        300.0,
        low=1,
    ),
    Attribute(
        f"{PLACE}image_secs",
        "number",
        "How long the image may be out of reach until that counts as a failure.",
        120.0,
        low=1,
    ),
    Attribute(
        f"{PLACE}memory_factor",
        "number",
        "By how much the memory of a pod grows that ran out of it.",
        1.5,
        low=1,
        high=16,
    ),
    Attribute(
        f"{PLACE}most_memory",
        "memory",
        "Up to how much it grows; by default four times what it was.",
    ),
    Attribute(
        f"{PLACE}pod_template",
        "text",
        "A file with manifests of Pods, for everything else; see docs/kubernetes.md.",
    ),
)
