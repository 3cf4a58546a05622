"""Constants of ElasticDL."""

from __future__ import annotations


class Mode:
    """Mode that `feed(dataset, mode, metadata)` is called with."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    PREDICTION = "prediction"


class MaxComputeConfig:
    """Names of the environment variables of MaxCompute."""

    PROJECT_NAME = "MAXCOMPUTE_PROJECT"
    ACCESS_ID = "MAXCOMPUTE_AK"
    ACCESS_KEY = "MAXCOMPUTE_SK"
    ENDPOINT = "MAXCOMPUTE_ENDPOINT"
    TUNNEL_ENDPOINT = "MAXCOMPUTE_TUNNEL_ENDPOINT"


class JobType:
    """Kinds of jobs."""

    TRAINING_ONLY = "training_only"
    EVALUATION_ONLY = "evaluation_only"
    PREDICTION_ONLY = "prediction_only"
    TRAINING_WITH_EVALUATION = "training_with_evaluation"


class MetricsDictKey:
    """Keys of the arguments of metrics."""

    MODEL_OUTPUT = "output"
    LABEL = "label"


class ReaderType:
    """Kinds of data readers."""

    CSV_READER = "CSV"
    ODPS_READER = "ODPS"
    RECORDIO_READER = "RecordIO"


class DistributionStrategy:
    """Strategies of training with several workers."""

    LOCAL = "Local"
    PARAMETER_SERVER = "ParameterServerStrategy"
    ALLREDUCE = "AllreduceStrategy"
