"""Command lines of ElasticDL, torchrun and DLRover: each of their options is taken, renamed, dropped or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl import exit_codes
from edl.cli.foreign_options import (
    DLROVER,
    ELASTICDL,
    TORCHRUN,
    DroppedOption,
    ForeignCommand,
    RefusedOption,
    translate_options,
)
from edl.cli.main import _parser, main
from edl.errors import SemanticError

MODULE = ["--model_def", "a.b.custom_model", "--training_data", "x.csv"]
# Options of the commands, by their sources: facts of `elasticdl train`, torchrun and dlrover-run.
OF_ELASTICDL = [
    "aux_params",
    "base_image",
    "callbacks",
    "checkpoint_dir",
    "checkpoint_dir_for_init",
    "checkpoint_steps",
    "cluster_spec",
    "cluster_spec_json",
    "custom_data_reader",
    "data_reader_params",
    "distribution_strategy",
    "envs",
    "eval_metrics_fn",
    "evaluation_steps",
    "extra_pypi_index",
    "feed",
    "force_use_kube_config_file",
    "get_model_steps",
    "grads_to_wait",
    "image",
    "image_name",
    "image_pull_policy",
    "job_command",
    "job_name",
    "job_type",
    "keep_checkpoint_max",
    "local_pkg_dir",
    "log_file_path",
    "log_level",
    "log_loss_steps",
    "loss",
    "lr_staleness_modulation",
    "master_pod_priority",
    "master_resource_limit",
    "master_resource_request",
    "max_step",
    "minibatch_size",
    "model_def",
    "model_zoo",
    "namespace",
    "need_elasticdl_job_service",
    "need_pod_manager",
    "need_task_manager",
    "need_tf_config",
    "num_epochs",
    "num_minibatches_per_task",
    "num_ps_pods",
    "num_workers",
    "optimizer",
    "output",
    "populate_env_names",
    "prediction_outputs_processor",
    "ps_pod_priority",
    "ps_resource_limit",
    "ps_resource_request",
    "relaunch_on_worker_failure",
    "relaunch_timeout_worker",
    "restart_policy",
    "sync_version_tolerance",
    "task_fault_tolerance",
    "training_data",
    "use_async",
    "validation_data",
    "volume",
    "worker_image",
    "worker_pod_priority",
    "worker_resource_limit",
    "worker_resource_request",
    "yaml",
]
# Its options that `elasticdl evaluate` and `predict` do not have.
_OF_TRAININGS = (
    "base_image", "evaluation_steps", "grads_to_wait", "image", "job_command", "job_type", "local_pkg_dir",
    "log_loss_steps", "lr_staleness_modulation", "max_step", "need_elasticdl_job_service", "need_pod_manager",
    "need_task_manager", "need_tf_config", "num_epochs", "prediction_outputs_processor",
    "relaunch_on_worker_failure", "relaunch_timeout_worker", "sync_version_tolerance", "task_fault_tolerance",
    "training_data", "use_async", "validation_data",
)  # fmt: skip
OF_OTHER_JOBS = [name for name in OF_ELASTICDL if name not in _OF_TRAININGS]
OF_TORCHRUN = [
    "event_log_handler",
    "local_addr",
    "local_ranks_filter",
    "log_dir",
    "log_line_prefix_template",
    "logs_specs",
    "master_addr",
    "master_port",
    "max_restarts",
    "module",
    "monitor_interval",
    "nnodes",
    "no_python",
    "node_rank",
    "nproc_per_node",
    "rdzv_backend",
    "rdzv_conf",
    "rdzv_endpoint",
    "rdzv_id",
    "redirects",
    "role",
    "run_path",
    "signals_to_handle",
    "standalone",
    "start_method",
    "tee",
    "numa_binding",
]
OF_DLROVER = [
    "accelerator",
    "auto_config",
    "auto_tunning",
    "comm_perf_test",
    "exclude_straggler",
    "membind_policy",
    "network_check",
    "node_unit",
    "numa_affinity",
    "precheck",
    "save_at_breakpoint",
    "training_port",
    "ucp_device_type",
]


@pytest.mark.parametrize(
    ("command", "names", "origin", "page"),
    [
        ("train", OF_ELASTICDL, ELASTICDL, "zoo.md"),
        ("evaluate", OF_OTHER_JOBS, ELASTICDL, "zoo.md"),
        ("predict", OF_OTHER_JOBS, ELASTICDL, "zoo.md"),
        ("run", OF_TORCHRUN, TORCHRUN, "elastic.md"),
        ("run", OF_DLROVER, DLROVER, "elastic.md"),
    ],
    ids=["ElasticDL", "elasticdl evaluate", "elasticdl predict", "torchrun", "DLRover"],
)
def test_every_option_is_answered_and_the_page_tells_how(
    command: str, names: list[str], origin: ForeignCommand, page: str, repository: Path
) -> None:
    flags = {flag[2:].replace("-", "_") for flag in _parser()[1][command]._option_string_actions}
    assert [name for name in names if name not in flags and name not in origin.options] == []
    text = (repository / "docs" / page).read_text()
    other = [name for name in origin.options if name not in flags and f"`--{name}`" not in text]
    assert other == []


def read_error(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = exit_codes.USAGE) -> str:
    assert main(arguments) == code
    return capsys.readouterr().err


def test_options_of_a_cluster_are_settings_of_a_job_in_pods() -> None:
    arguments = [
        *("--on", "kubernetes", "--worker_resource_request", "cpu=2,memory=4Gi,gpu=1", "--dataset_fn=rows"),
        *(
            "--ps_resource_limit=cpu=1",
            "--envs",
            "A=1,B=x",
            "--image_name=team/models:7",
            "--num_workers",
            "3",
        ),
    ]
    translated, notes = translate_options(arguments, [ELASTICDL], ["--on", "--num_workers"])
    assert translated == [
        *(
            "--on",
            "kubernetes",
            "--set",
            "worker_cpu=2",
            "--set",
            "worker_memory=4Gi",
            "--set",
            "worker_gpu=1",
        ),
        *("--feed", "rows", "--set", "ps_cpu_limit=1", "--set", "env=A=1,B=x", "--image", "team/models:7"),
        *("--num_workers", "3"),
    ]
    assert notes[0] == (
        "--worker_resource_request of ElasticDL is --set worker_cpu=2 --set worker_memory=4Gi --set worker_gpu=1 here"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--worker_resource_request", "disk=1"], "disk of a worker has no setting"),
        (["--master_resource_request", "gpu=1"], "gpu of a master has no setting"),
        (["--ps_resource_request", "4Gi"], "'4Gi' is not name=value,name=value"),
        (["--envs", "A=1,2,B=3"], "the value of the variable A has a comma"),
        (["--volume", "claim_name=c"], "--volume of ElasticDL is a setting of jobs on Kubernetes"),
    ],
)
def test_what_has_no_setting_is_named(arguments: list[str], message: str) -> None:
    with pytest.raises(SemanticError) as raised:
        translate_options(["--on", "kubernetes", *arguments], [ELASTICDL], [])
    assert raised.value.message == message


@pytest.mark.parametrize(
    ("flag", "instead"),
    [
        ("--docker_base_url=x", "--build DIR"),
        ("--records_per_task", "--num_minibatches_per_task"),
        ("--checkpoint_dir", "in its job folder"),
        ("--worker_resource_request=cpu=1", "add --on kubernetes"),
        ("--worker_image=x", "add --on kubernetes"),
        ("--job_command", "edl run"),
        ("--prediction_outputs_processor", "PredictionOutputsProcessor"),
    ],
)
def test_an_option_that_cannot_be_followed_says_what_to_do_instead(
    flag: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    err = read_error(["train", *MODULE, flag], capsys)
    assert f"{flag.partition('=')[0]} of ElasticDL" in err
    assert instead in err


def test_an_option_without_effect_is_noted_and_its_value_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    err = read_error(
        ["train", *MODULE, "--need_task_manager", "True", "--use_go_ps=true"], capsys, exit_codes.FAILED
    )
    assert "note: --need_task_manager of ElasticDL has no effect: it is always on\n" in err
    assert "note: --use_go_ps of ElasticDL has no effect" in err
    assert "has no module a" in err


def test_a_command_line_of_torchrun_starts_its_script(capsys: pytest.CaptureFixture[str]) -> None:
    torchrun = [
        "--nnodes=1",
        "--standalone",
        "--rdzv-backend",
        "c10d",
        "--nproc-per-node",
        "cpu",
        "--network-check",
    ]
    err = read_error(["run", *torchrun, "missing.py", "--nnodes", "3"], capsys, exit_codes.FAILED)
    assert "there is no file missing.py" in err
    assert "note: --network-check of DLRover has no effect: edl.elastic compares" in err
    assert "--nnodes" not in err


def test_reasons_and_replacements_are_short_lines() -> None:
    for origin in (ELASTICDL, TORCHRUN, DLROVER):
        for option in origin.options.values():
            texts = (
                option
                if isinstance(option, RefusedOption)
                else option[:1]
                if isinstance(option, DroppedOption)
                else ()
            )
            assert all(0 < len(text) < 110 and text[-1] != "." for text in texts)
