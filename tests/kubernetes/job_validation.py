"""What is wrong with the policies of a Job, in the words of a real server."""

from __future__ import annotations

from tests.kubernetes.errors import Cause, invalid_value, unsupported
from tests.kubernetes.kinds import Object

ACTIONS = ["Count", "FailIndex", "FailJob", "Ignore"]
OPERATORS = ["In", "NotIn"]
NOT_NEGATIVE = (
    *("activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completions", "maxFailedIndexes"),
    *("parallelism", "ttlSecondsAfterFinished"),
)
ONE_OF = "specifying one of OnExitCodes and OnPodConditions is required"


def policies(spec: Object) -> list[Cause]:
    too_small = "must be greater than or equal to 0"
    causes = [
        invalid_value(f"spec.{name}", spec[name], too_small) for name in NOT_NEGATIVE if spec.get(name, 0) < 0
    ]
    if spec.get("maxFailedIndexes", 0) > spec.get("completions", 0):
        why = "must be less than or equal to completions"
        causes.append(invalid_value("spec.maxFailedIndexes", spec["maxFailedIndexes"], why))
    if "podFailurePolicy" not in spec:
        return causes
    if spec["podReplacementPolicy"] != "Failed":
        causes.append(unsupported("spec.podReplacementPolicy", spec["podReplacementPolicy"], ["Failed"]))
    if (restarts := spec["template"]["spec"]["restartPolicy"]) != "Never":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        causes.append(invalid_value("spec.template.spec.restartPolicy", restarts, why))
    for number, rule in enumerate(spec["podFailurePolicy"]["rules"]):
        causes += _rule(spec, rule, f"spec.podFailurePolicy.rules[{number}]")
    return causes


def _rule(spec: Object, rule: Object, path: str) -> list[Cause]:
    causes = []
    if rule["action"] not in ACTIONS:
        causes.append(unsupported(f"{path}.action", rule["action"], ACTIONS))
    elif rule["action"] == "FailIndex" and "backoffLimitPerIndex" not in spec:
        why = "requires the backoffLimitPerIndex to be set"
        causes.append(invalid_value(f"{path}.action", rule["action"], why))
    if ("onExitCodes" in rule) == bool(rule.get("onPodConditions")):
        causes.append(Cause("FieldValueInvalid", path, f"Invalid value: {ONE_OF}"))
    if "onExitCodes" in rule:
        causes += _exit_codes(spec, rule["onExitCodes"], f"{path}.onExitCodes")
    return causes


def _exit_codes(spec: Object, wanted: Object, path: str) -> list[Cause]:
    causes, values, template = [], wanted["values"], spec["template"]["spec"]
    containers = [one["name"] for one in (*template["containers"], *template.get("initContainers", []))]
    if wanted.get("containerName", containers[0]) not in containers:
        why = "must be one of the container or initContainer names in the pod template"
        causes.append(invalid_value(f"{path}.containerName", wanted["containerName"], why))
    if wanted["operator"] not in OPERATORS:
        causes.append(unsupported(f"{path}.operator", wanted["operator"], OPERATORS))
    for number, value in enumerate(values):
        if value == 0 and wanted["operator"] == "In":
            causes.append(invalid_value(f"{path}.values[{number}]", 0, "must not be 0 for the In operator"))
    if values != sorted(values):
        shown = f"[]int32{{{', '.join(map(str, values))}}}"
        causes.append(
            Cause("FieldValueInvalid", f"{path}.values", f"Invalid value: {shown}: must be ordered")
        )
    return causes
