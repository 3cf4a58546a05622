"""Find the packages of the distribution; setup.cfg holds all its other metadata.

setup.cfg can search one folder only, and the packages stand below two; the two packages of data have folders of
their own, which `package_dir` in setup.cfg names.
"""

from setuptools import find_packages, setup

DATA_PACKAGES = ["sqlflow_edl.codegen_templates", "sqlflow_edl.grammar"]

setup(
    packages=[
        *find_packages(include=["sqlflow_edl", "sqlflow_edl.*"]),
        *find_packages("runtime"),
        *DATA_PACKAGES,
    ]
)
