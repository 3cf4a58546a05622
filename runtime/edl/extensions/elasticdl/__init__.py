"""Modules of a model zoo that were written for ElasticDL, run as they are.

`imports` answers what they import, `contract` turns their functions into the functions of `edl.program.contract`, and
`keras2` adds what Keras 2 had and Keras 3 has not. `names` holds the names of the packages `elasticdl` and
`elasticdl_preprocessing` that such modules import; it takes from them their names and their meaning, not their code.
"""
