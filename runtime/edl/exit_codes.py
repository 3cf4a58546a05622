"""Exit codes of `edl` and of instances: one table for the code, the help page and the documentation."""

OK = 0
FAILED = 1
USAGE = 2
ABANDONED = 3
PREEMPTED = 4
JOB_FAILED = 5
HUNG = 6
PAUSED = 7
INTERRUPTED = 130
TERMINATED = 143

MEANING = {
    OK: "the job succeeded; an instance was stopped",
    FAILED: "the job failed, see the message; an instance failed and is replaced",
    USAGE: "the command line is wrong",
    ABANDONED: "an instance lost its parent process",
    PREEMPTED: "a worker was preempted and returned its tasks",
    JOB_FAILED: "a master failed its job permanently, because a restart would not help",
    HUNG: "a worker made no progress for too long; the stacks of its threads are in its log",
    PAUSED: "a master paused its job",
    INTERRUPTED: "interrupted with Ctrl-C, or cancelled",
    TERMINATED: "a command or its job ended by SIGTERM; trainings and jobs on Kubernetes are kept",
}
HELP = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANING.items())
