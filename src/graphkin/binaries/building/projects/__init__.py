"""Projects configured once and compiled for many processors, compilers and levels."""

from graphkin.binaries.building.projects.all_projects import build_projects
from graphkin.binaries.building.projects.one_project import ProjectReport, build_project
from graphkin.binaries.building.projects.package_list import (
    Package,
    PackageList,
    read_package_list,
)
from graphkin.binaries.building.projects.toolchains import Toolchain, find_toolchain

__all__ = [
    "Package",
    "PackageList",
    "ProjectReport",
    "Toolchain",
    "build_project",
    "build_projects",
    "find_toolchain",
    "read_package_list",
]
