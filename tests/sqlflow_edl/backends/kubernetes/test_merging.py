"""A user's pod template under our pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edl.errors import SemanticError
from sqlflow_edl.backends.kubernetes.manifests.merging import apply_template, templates


def pod(**spec: Any) -> dict[str, Any]:
    ours = {"name": "worker", "image": "ours", "env": [{"name": "A", "value": "ours"}]}
    return {"metadata": {"labels": {"a": "ours"}}, "spec": {"containers": [ours], **spec}}


def test_ours_stays_and_the_rest_is_the_templates() -> None:
    template = {
        "metadata": {"name": "x", "labels": {"a": "theirs", "b": "theirs"}},
        "spec": {"restartPolicy": "Always", "hostNetwork": True},
    }
    found = apply_template(template, pod(restartPolicy="Never"), "worker")
    assert found["metadata"] == {"labels": {"a": "ours", "b": "theirs"}}
    assert (found["spec"]["restartPolicy"], found["spec"]["hostNetwork"]) == ("Never", True)


def test_containers_and_what_they_list_are_merged_by_name_and_ours_is_the_first() -> None:
    theirs = {
        "name": "instance",
        "image": "theirs",
        "tty": True,
        "env": [{"name": "A", "valueFrom": {}}, {"name": "B", "value": "b"}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    found = apply_template({"spec": {"containers": [{"name": "helper"}, theirs]}}, pod(), "worker")
    ours, helper = found["spec"]["containers"]
    assert helper == {"name": "helper"}
    assert (ours["name"], ours["image"], ours["tty"]) == ("worker", "ours", True)
    assert ours["env"] == [{"name": "A", "value": "ours"}, {"name": "B", "value": "b"}]
    assert ours["volumeMounts"] == [{"name": "v", "mountPath": "/v"}]


def test_volumes_are_told_apart_by_name_and_tolerations_put_together() -> None:
    ours = pod(volumes=[{"name": "v", "emptyDir": {}}], tolerations=[{"key": "a"}])
    template = {
        "spec": {
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "emptyDir": {}}],
            "tolerations": [{"key": "a"}, {"key": "b"}],
        }
    }
    spec = apply_template(template, ours, "worker")["spec"]
    assert spec["volumes"] == [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]
    assert spec["tolerations"] == [{"key": "a"}, {"key": "b"}]


def test_a_document_may_be_for_one_role(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(
        "apiVersion: v1\nkind: Pod\nspec: {hostNetwork: true}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {labels: {sqlflow-edl/role: ps}}\n"
    )
    found = templates(path)
    assert {role: len(each) for role, each in found.items()} == {"master": 1, "worker": 1, "ps": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "this is not valid YAML"),
        ("- x", "holds an object that is not a Pod"),
        ("apiVersion: apps/v1\nkind: Deployment", "holds an object that is not a Pod"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {labels: {sqlflow-edl/role: cook}}", "for the role 'cook'"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: [{image: x}]}", "a container without a name"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(text)
    with pytest.raises(SemanticError, match=message):
        templates(path)
