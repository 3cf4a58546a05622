"""Why float16, which has a small range, is not for every job: a message and a hint each."""

FLOAT16_ON_CPU = (
    "float16 computes on GPUs only: a CPU has no fast arithmetic for it",
    "use bfloat16, which any CPU computes, or float32",
)
FLOAT16_ON_SERVERS = (
    "float16 skips steps whose gradients overflow, which parameter servers cannot detect",
    "use bfloat16, or the strategy allreduce",
)
FLOAT16_IN_KERAS = ("models of Keras don't compute in float16", "use bfloat16, or a model of PyTorch")
