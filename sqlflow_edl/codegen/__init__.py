"""Code generation: from a JobSpec to a readable training program."""

from sqlflow_edl.codegen.program import GeneratedProgram, generate

__all__ = ["GeneratedProgram", "generate"]
