"""Exit codes of `sqlflow`: one table for the code, the help page and the documentation."""

OK = 0
FAILED = 1
USAGE = 2
NOT_NEEDED = 3
INTERRUPTED = 130
TERMINATED = 143

MEANING = {
    OK: "every statement succeeded",
    FAILED: "a statement failed; the message says which and why",
    USAGE: "the command line is wrong",
    NOT_NEEDED: "retrain: the condition does not hold, so nothing was trained",
    INTERRUPTED: "interrupted with Ctrl-C",
    TERMINATED: "ended by SIGTERM; trainings and jobs on Kubernetes are kept",
}
HELP = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANING.items())
