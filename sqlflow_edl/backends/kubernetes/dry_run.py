"""Objects of a job as YAML, without a cluster: `--dry-run --on kubernetes`.

Values that exist only with a real job have placeholders: the job id, the uid of the Job, the token and the passwords.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from edl.build import SHOWN
from sqlflow_edl.backends.kubernetes.manifests.objects import JobManifests, Submission
from sqlflow_edl.backends.kubernetes.manifests.rendering import Object, format_yaml

JOB = "00000000-000000-000000-000000"
UID = "00000000-0000-0000-0000-000000000000"
HIDDEN = "(not shown)"

_HEAD = f"""\
# The objects of the job, in the order in which they are made. The job id {JOB},
# the uid {UID}, the token, passwords and keys stand in for what comes with the job, and zeros for the build.
"""


def describe_submission(submission: Submission) -> str:
    """Return the YAML of a submission; placeholders replace the values that only a real job has."""
    secrets = dict.fromkeys(submission.secrets, HIDDEN)
    certificates = dict.fromkeys(submission.certificates, HIDDEN)
    script = HIDDEN.encode() if submission.script else b""
    build = structs.replace(submission.build, digest="0" * SHOWN)
    shown_as = replace(
        submission,
        job=JOB,
        token=HIDDEN,
        secrets=secrets,
        certificates=certificates,
        script=script,
        build=build,
    )
    objects = JobManifests(shown_as)
    return _HEAD + format_yaml([_add_queue_labels(objects), *objects.owned_objects(UID)])


def _add_queue_labels(objects: JobManifests) -> Object:
    """Return the Job with the labels of its queue, which it gets when all other objects exist."""
    job = objects.job()
    job["metadata"]["labels"] |= objects.queue
    return job
