"""Several machines without a cluster manager: one has the job's supervisor, an agent on each other one offers slots.

`server` is the supervisor's end: agents join, instances are placed, lost machines are noticed. `agent` is the other
end: a process that starts and ends instances on its machine as the supervisor does on its own. Both sides prove that
they know the job's join token, bound to the certificate of the connection (`joining`), before anything else is said.
"""
