"""Find the packages of the distribution; setup.cfg holds all its other metadata.

setup.cfg can search one folder only, and the packages stand below two; the packages of data have folders of their own,
which `package_dir` in setup.cfg names. One of them, `docs`, also has programs that make the documentation.
"""

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

DOCS = "sqlflow_edl.docs"
DATA_PACKAGES = ["sqlflow_edl.codegen_templates", DOCS, "sqlflow_edl.grammar"]


class BuildPackages(build_py):
    """Build of the packages without the programs in `docs`."""

    def find_package_modules(self, package, package_dir):
        found = super().find_package_modules(package, package_dir)
        return [each for each in found if package != DOCS or each[1] == "__init__"]


setup(
    packages=[
        *find_packages(include=["sqlflow_edl", "sqlflow_edl.*"]),
        *find_packages("runtime"),
        *DATA_PACKAGES,
    ],
    cmdclass={"build_py": BuildPackages},
)
