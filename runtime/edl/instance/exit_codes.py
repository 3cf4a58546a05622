"""The exit codes of `edl` and of instances, one table for the code, the help page and the documentation."""

OK = 0
FAILED = 1
USAGE = 2
ABANDONED = 3
INTERRUPTED = 130

MEANING = {
    OK: "the job succeeded; a training process was told to end",
    FAILED: "the job failed; the message says why",
    USAGE: "the command line is wrong",
    ABANDONED: "a training process lost its parent in the middle of a job",
    INTERRUPTED: "interrupted with Ctrl-C",
}
HELP = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANING.items())
