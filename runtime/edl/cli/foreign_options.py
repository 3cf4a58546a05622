"""Options that command lines of ElasticDL, torchrun and DLRover have, and `edl` has not.

Each is renamed, dropped with a note, or refused with the reason and a replacement. What has the same name here is
simply taken. docs/zoo.md and docs/elastic.md list them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from edl.errors import SemanticError

Arguments = list[str]


class RenamedOption(NamedTuple):
    """Option that has another name or form here. `translate` returns the arguments of this command for its value.

    `in_pods`: only of a job on Kubernetes.
    """

    translate: Callable[[str], Arguments]
    in_pods: bool = False


class DroppedOption(NamedTuple):
    """Option without an effect here, and why. `takes_value`: its value follows."""

    reason: str
    takes_value: bool = True


class RefusedOption(NamedTuple):
    """Option that cannot be followed: what it did, and the replacement."""

    did: str
    instead: str


ForeignOption = RenamedOption | DroppedOption | RefusedOption


class ForeignCommand(NamedTuple):
    """Command of another project, and its options by name, without dashes and with underscores."""

    name: str
    options: Mapping[str, ForeignOption]


def translate_options(
    arguments: Sequence[str], origins: Sequence[ForeignCommand], flags: Sequence[str]
) -> tuple[Arguments, list[str]]:
    """Return the arguments of this command, and notes on what was changed.

    `flags` are options of this command, which stay. Raises SemanticError for an option that cannot be followed.
    """
    in_pods = any(argument.partition("=")[0] == "--on" for argument in arguments)
    translated: Arguments = []
    notes: list[str] = []
    following = iter(arguments)
    for argument in following:
        flag, equals, value = argument.partition("=")
        origin, option = (None, None) if flag in flags else _find(flag, origins)
        if isinstance(option, RefusedOption):
            raise SemanticError(f"{flag} of {origin} {option.did}", hint=option.instead)
        if isinstance(option, DroppedOption):
            if option.takes_value and not equals:
                next(following, "")
            notes.append(f"{flag} of {origin} has no effect: {option.reason}")
        elif isinstance(option, RenamedOption):
            if option.in_pods and not in_pods:
                raise SemanticError(
                    f"{flag} of {origin} is a setting of jobs on Kubernetes", hint="add --on kubernetes"
                )
            new = option.translate(value if equals else next(following, ""))
            notes += [f"{flag} of {origin} is {' '.join(new)} here"] if new else []
            translated += new
        else:
            translated.append(argument)
    return translated, notes


def takes_following_value(argument: str, origins: Sequence[ForeignCommand]) -> bool:
    """Return True if the next argument is the value of this option of the origins."""
    _, option = _find(argument, origins)
    return isinstance(option, RenamedOption) or (isinstance(option, DroppedOption) and option.takes_value)


def _find(flag: str, origins: Sequence[ForeignCommand]) -> tuple[str, ForeignOption] | tuple[None, None]:
    """Return the command that has the option, and the option."""
    name = flag[2:].replace("-", "_") if flag.startswith("--") else ""
    of_origins = ((origin.name, origin.options[name]) for origin in origins if name in origin.options)
    return next(of_origins, (None, None))


# ElasticDL ---------------------------------------------------------------------------------------------------

_RESOURCES = {"cpu": "cpu", "memory": "memory", "gpu": "gpu"}
_PAIR = re.compile(r"[A-Za-z_]\w*=")


def _rename(flag: str) -> Callable[[str], Arguments]:
    return lambda value: [flag, value]


def _rename_setting(name: str) -> Callable[[str], Arguments]:
    return lambda value: ["--set", f"{name}={value}"]


def _resources(role: str, end: str) -> Callable[[str], Arguments]:
    def translate(value: str) -> Arguments:
        return [part for name, amount in _pairs(value) for part in ("--set", f"{setting(name)}={amount}")]

    def setting(resource: str) -> str:
        if resource not in _RESOURCES or (resource == "gpu" and (role != "worker" or end)):
            raise SemanticError(
                f"{resource} of a {role} has no setting", hint="--set pod_template=FILE takes any pod"
            )
        return f"{role}_{resource}{end}"

    return translate


def _environment(value: str) -> Arguments:
    pairs = list(_pairs(value))
    if long := [name for name, text in pairs if "," in text]:
        raise SemanticError(
            f"the value of the variable {long[0]} has a comma",
            hint="--set pod_template=FILE takes any variable",
        )
    return ["--set", "env=" + ",".join(f"{name}={text}" for name, text in pairs)]


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of `a=1,b=2,3`: a value may have commas. Raises SemanticError for another form."""
    starts = [
        match.start()
        for match in _PAIR.finditer(text)
        if match.start() == 0 or text[match.start() - 1] == ","
    ]
    if not starts or starts[0] != 0:
        raise SemanticError(f"{text!r} is not name=value,name=value", hint="such as cpu=1,memory=4096Mi")
    for start, end in zip(starts, [*starts[1:], len(text) + 1], strict=True):
        name, _, value = text[start : end - 1].partition("=")
        yield name, value


_IMAGES = RefusedOption(
    "built an image for each job", "--image NAME --build DIR builds one; see sqlflow help images"
)
_OF_TRAIN = DroppedOption("it is of trainings; other jobs share the rows among their workers")
_OWN_LOOP = RefusedOption(
    "ran a training loop of your own", "start the script by `edl run`; see sqlflow help elastic"
)
_ALWAYS_ON = DroppedOption("it is always on")
_NO_LONGER = "no longer exists"


def _pod_setting(how: str) -> RefusedOption:
    return RefusedOption(
        "is a setting of jobs on Kubernetes", f"add --on kubernetes, and {how}; see sqlflow help kubernetes"
    )


ELASTICDL = ForeignCommand(
    "ElasticDL",
    {
        **dict.fromkeys(("dataset_fn", "input_fn"), RenamedOption(_rename("--feed"))),
        **dict.fromkeys(("image_name", "worker_image"), RenamedOption(_rename("--image"), in_pods=True)),
        "image_pull_policy": RenamedOption(_rename_setting("image_pull_policy"), in_pods=True),
        "envs": RenamedOption(_environment, in_pods=True),
        **{
            f"{role}_resource_{what}": RenamedOption(_resources(role, end), in_pods=True)
            for role in ("master", "worker", "ps")
            for what, end in (("request", ""), ("limit", "_limit"))
        },
        **dict.fromkeys(
            ("need_pod_manager", "need_task_manager", "relaunch_on_worker_failure", "relaunch_timeout_worker",
             "restart_policy", "task_fault_tolerance", "use_go_ps"), _ALWAYS_ON),
        "job_type": DroppedOption("the command and its data tell it"),
        "log_level": DroppedOption("all messages are in the log"),
        "force_use_kube_config_file": DroppedOption("the file is found as kubectl finds it; KUBECONFIG names another"),
        **dict.fromkeys(
            ("distribution_strategy", "num_ps_pods", "use_async", "grads_to_wait", "get_model_steps",
             "lr_staleness_modulation", "minibatch_size", "num_minibatches_per_task", "checkpoint_steps",
             "keep_checkpoint_max"), _OF_TRAIN),
        "output": DroppedOption("the figures of an evaluation go to standard output"),
        "sync_version_tolerance": RefusedOption(_NO_LONGER, "stale gradients are recomputed: leave it out"),
        "checkpoint_dir": RefusedOption(
            _NO_LONGER,
            "checkpoints of a job with --num_workers are in its job folder, or where the variable EDL_CHECKPOINTS "
            "says"),
        "volume": _pod_setting("--set volume=CLAIM, which pods see as /edl/volume"),
        "populate_env_names": _pod_setting("--set env=NAME=VALUE for variables of every container"),
        **dict.fromkeys(
            ("aux_params", "cluster_spec", "cluster_spec_json", "yaml"), _pod_setting("--set pod_template=FILE")),
        **dict.fromkeys(
            ("master_pod_priority", "worker_pod_priority", "ps_pod_priority"),
            _pod_setting("--set priority_class=NAME")),
        **dict.fromkeys(
            ("base_image", "docker_base_url", "docker_image_repository", "docker_tlscert", "docker_tlskey",
             "extra_pypi_index", "image_base", "local_pkg_dir"), _IMAGES),
        **dict.fromkeys(("job_command", "need_elasticdl_job_service", "need_tf_config"), _OWN_LOOP),
        **dict.fromkeys(
            ("master_addr", "port", "ps_addrs", "ps_id", "worker_id"),
            RefusedOption("started an instance of a job", "edl train --num_workers N starts all instances of a job")),
        "records_per_task": RefusedOption(
            _NO_LONGER, "a task has --num_minibatches_per_task times --minibatch_size rows"),
        "learning_rate_scheduler": RefusedOption(_NO_LONGER, "define learning_rate(steps) in the module"),
        "tensorboard_log_dir": RefusedOption(
            _NO_LONGER, "curves of a job with --num_workers are in its folder: sqlflow job ID"),
        "prediction_outputs_processor": RefusedOption(
            _NO_LONGER, "the class PredictionOutputsProcessor of the module is used, if there is one"),
        **dict.fromkeys(
            ("collective_communicator_service_name", "num_of_redis_instances", "embedding_service_endpoint"),
            RefusedOption(_NO_LONGER, "leave it out")),
        "log_file_path": RefusedOption(_NO_LONGER, "add 2> FILE to the command: messages go to standard error"),
    },
)  # fmt: skip


# torchrun and DLRover ----------------------------------------------------------------------------------------


_NO_ADDRESS = DroppedOption("the workers of a job find each other")
_CHECKED = DroppedOption("edl.elastic compares the machines when a group forms")

TORCHRUN = ForeignCommand(
    "torchrun",
    {
        **dict.fromkeys(("master_addr", "master_port", "rdzv_backend", "rdzv_conf", "rdzv_id"), _NO_ADDRESS),
        "standalone": DroppedOption("it is so without it", takes_value=False),
        **dict.fromkeys(
            ("local_ranks_filter", "log_dir", "log_line_prefix_template", "logs_specs", "redirects", "tee"),
            DroppedOption("each line is shown with its worker, and sqlflow logs ID keeps them")),
        "monitor_interval": DroppedOption("the end of a worker is noticed at once"),
        "role": DroppedOption("workers are called worker-0, worker-1 and so on"),
        "start_method": DroppedOption("workers are forked from a process that has imported PyTorch"),
        "event_log_handler": DroppedOption("the events of a job are in its folder: sqlflow job ID"),
        "signals_to_handle": DroppedOption("SIGTERM and SIGINT are handled"),
        "no_python": RefusedOption("ran a program that is not Python", "start it by a Python script"),
        "run_path": RefusedOption("ran a module by runpy", "write -m MODULE, or the file of the script"),
        "numa_binding": RefusedOption("bound workers to parts of a machine", "bind the whole command, by numactl"),
    },
)  # fmt: skip
DLROVER = ForeignCommand(
    "DLRover",
    {
        "auto_config": DroppedOption("--workers N is the number", takes_value=False),
        "auto_tunning": DroppedOption("the script sets batch size and workers of its loader", takes_value=False),
        "comm_perf_test": DroppedOption("edl.elastic measures the machines itself", takes_value=False),
        "network_check": DroppedOption(_CHECKED.reason, takes_value=False),
        "exclude_straggler": DroppedOption("edl.elastic replaces a worker that hangs", takes_value=False),
        "precheck": _CHECKED,
        "save_at_breakpoint": DroppedOption(
            "with edl.elastic the peers keep the state of a failed worker", takes_value=False),
        "accelerator": DroppedOption("PyTorch finds the GPUs"),
        "training_port": DroppedOption("free ports are taken"),
        "ucp_device_type": DroppedOption("checkpoints of edl.elastic are read on any device"),
        "node_unit": RefusedOption("grouped machines", "leave it out: the group takes any number of workers"),
        **dict.fromkeys(
            ("membind_policy", "numa_affinity"),
            RefusedOption("bound workers to parts of a machine", "bind the whole command, by numactl")),
    },
)  # fmt: skip
