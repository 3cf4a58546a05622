"""`sqlflow language-server`: errors, completion and layout for editors."""
