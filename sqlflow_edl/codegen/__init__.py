"""Code generation: from a JobSpec to a readable training program."""

from sqlflow_edl.codegen.program import Program, generate

__all__ = ["Program", "generate"]
