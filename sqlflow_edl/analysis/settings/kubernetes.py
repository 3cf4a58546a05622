"""Settings of jobs on Kubernetes, as rows of the dictionary of attributes.

A statement writes them in WITH, as `kubernetes.image`; a configuration file and the command line omit the prefix.
`sqlflow_edl.backends.kubernetes.settings` merges these sources.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlflow_edl.analysis.settings.attribute_dictionary import PLACE, AttributeRow

USER = 10001  # of the image

# label, processor request and limit, memory request; None: as the request, or by the job's size
_ROLES = {
    "master": ("the master", "0.5", "2", "1Gi"),
    "worker": ("each worker", "1", None, None),
    "ps": ("each parameter server", "1", None, None),
}


def _resources() -> Iterator[AttributeRow]:
    for role, (who, processors, most, memory) in _ROLES.items():
        size = "" if memory else "; by default from the size of the model"
        yield AttributeRow(f"{PLACE}{role}_cpu", "processors", f"CPU request of {who}.", processors)
        yield AttributeRow(f"{PLACE}{role}_memory", "memory", f"Memory request of {who}{size}.", memory)
        yield AttributeRow(
            f"{PLACE}{role}_cpu_limit",
            "processors or none",
            f"CPU limit of {who}; by default the request.",
            most,
        )
        yield AttributeRow(
            f"{PLACE}{role}_memory_limit", "memory or none", f"Memory limit of {who}; by default the request."
        )


KUBERNETES = (
    AttributeRow(f"{PLACE}context", "text", "Context of the kubeconfig; by default the current one."),
    AttributeRow(f"{PLACE}namespace", "text", "Namespace of the job's objects; by default the context's."),
    AttributeRow(
        f"{PLACE}image",
        "text",
        "Image of every container, as built by `sqlflow image`; by default sqlflow-edl of this "
        "version, with the suffix -gpu if workers request GPUs.",
    ),
    AttributeRow(
        f"{PLACE}image_pull_policy",
        "text",
        "Pull policy of the image; by default the cluster's: Always for the tag latest, else IfNotPresent.",
        choices=("Always", "IfNotPresent", "Never"),
    ),
    AttributeRow(f"{PLACE}image_pull_secrets", "texts", "Names of Secrets for the image's registry."),
    AttributeRow(
        f"{PLACE}service_account",
        "text",
        "Service account of the pods; by default one is created for the job, with the permissions "
        "that its master needs.",
    ),
    AttributeRow(
        f"{PLACE}network_policy",
        "boolean",
        "Restrict the network of the job's pods to each other, name servers, the data source, and object stores if "
        "the job uses one.",
        False,
    ),
    AttributeRow(
        f"{PLACE}tls",
        "boolean",
        "Encrypt all calls between the job's pods by mutual TLS, with certificates of this job. Not "
        "for several workers without parameter servers.",
        False,
    ),
    *_resources(),
    AttributeRow(
        f"{PLACE}worker_gpu",
        "integer",
        "GPUs of each worker. A network is trained and used on the first of them.",
        0,
        low=0,
        high=64,
    ),
    AttributeRow(f"{PLACE}gpu_resource", "text", "Resource name of a GPU in the cluster.", "nvidia.com/gpu"),
    AttributeRow(f"{PLACE}node_selector", "pairs", "Labels of the nodes that may run pods of the job."),
    AttributeRow(f"{PLACE}tolerations", "taints", "Taints of nodes that pods of the job tolerate."),
    AttributeRow(
        f"{PLACE}worker_node_selector", "pairs", "Additional labels of the nodes that may run workers."
    ),
    AttributeRow(f"{PLACE}worker_tolerations", "taints", "Additional taints of nodes that workers tolerate."),
    AttributeRow(f"{PLACE}priority_class", "text", "Priority class of the pods."),
    AttributeRow(
        f"{PLACE}low_priority_class",
        "text",
        "Priority class of the workers beyond high_priority_fraction; these are preempted first.",
    ),
    AttributeRow(
        f"{PLACE}high_priority_fraction",
        "number",
        "Share of the workers, rounded up, with priority_class; the others have low_priority_class.",
        1.0,
        low=0,
        high=1,
    ),
    AttributeRow(
        f"{PLACE}queue",
        "text",
        "Queue of Kueue (a LocalQueue of the namespace) that admits the master, and each worker and server.",
    ),
    AttributeRow(f"{PLACE}queue_priority", "text", "WorkloadPriorityClass of Kueue, for that queue."),
    AttributeRow(
        f"{PLACE}volume",
        "text",
        "PersistentVolumeClaim that every pod mounts (ReadWriteMany); checkpoints are stored there.",
    ),
    AttributeRow(f"{PLACE}volume_code", "text", "Folder of the volume with your own modules."),
    AttributeRow(
        f"{PLACE}checkpoints",
        "text",
        "Location of checkpoints: a URL of an object store, or a folder that the image or the pod "
        "template mounts in all pods; by default the volume, and without one the master's disk.",
    ),
    AttributeRow(
        f"{PLACE}master_disk",
        "memory",
        "Disk request and limit of the master; it bounds its checkpoints. By default the disk of its node.",
    ),
    AttributeRow(f"{PLACE}labels", "pairs", "Additional labels of every object of the job."),
    AttributeRow(f"{PLACE}annotations", "pairs", "Additional annotations of every object of the job."),
    AttributeRow(
        f"{PLACE}env",
        "pairs",
        "Environment variables of every container. Everyone who can read pods sees them: no secrets.",
    ),
    AttributeRow(
        f"{PLACE}run_as_user",
        "integer",
        "User and group that containers run as; 0 lets the cluster choose one.",
        USER,
        low=0,
        high=2**31 - 1,
    ),
    AttributeRow(
        f"{PLACE}ttl_secs",
        "integer",
        "Seconds to keep the objects of a job after its end, for its logs.",
        86_400,
        low=0,
        high=2**31 - 1,
    ),
    AttributeRow(
        f"{PLACE}master_retries",
        "integer",
        "Crashes of the master until the job fails; the draining of its node does not count.",
        20,
        low=0,
        high=1000,
    ),
    AttributeRow(
        f"{PLACE}grace_secs",
        "integer",
        "Time that pods have to end after SIGTERM, in seconds; a master has 10 at most.",
        60,
        low=1,
        high=3600,
    ),
    AttributeRow(
        f"{PLACE}pending_secs",
        "number",
        "Seconds that a parameter server may wait for a node before a worker takes its place.",
        300.0,
        low=1,
    ),
    AttributeRow(
        f"{PLACE}image_secs",
        "number",
        "Seconds that the image may be unavailable before that counts as a failure.",
        120.0,
        low=1,
    ),
    AttributeRow(
        f"{PLACE}outage_secs",
        "number",
        "Seconds that the master, and the client that follows it, wait for an API server that does not answer, and "
        "pods for a data source that they have reached before.",
        3600.0,
        low=1,
    ),
    AttributeRow(
        f"{PLACE}wait_secs",
        "number",
        "Seconds that the job may wait for the pod of its master, or for pods without which it does not go on; 0 for "
        "no limit. `--wait-limit 30m` sets it.",
        0.0,
        low=0,
    ),
    AttributeRow(
        f"{PLACE}min_workers",
        "integer",
        "Workers that must be ready before the job begins; with a `queue` they are admitted together. 0 for none. "
        "`--min-workers 4` sets it.",
        0,
        low=0,
    ),
    AttributeRow(
        f"{PLACE}node_failures",
        "integer",
        "Failures of workers and servers on a node after which the job avoids it, unless all of its "
        "nodes have as many; 0 avoids none.",
        3,
        low=0,
        high=1000,
    ),
    AttributeRow(
        f"{PLACE}memory_factor",
        "number",
        "Growth factor of a pod's memory after it ran out of memory.",
        1.5,
        low=1,
        high=16,
    ),
    AttributeRow(
        f"{PLACE}most_memory",
        "memory",
        "Largest memory after that growth; by default four times the initial memory.",
    ),
    AttributeRow(
        f"{PLACE}pod_template",
        "text",
        "File with manifests of Pods, for all other settings; see docs/kubernetes.md.",
    ),
)
