"""Every error that graphkin raises on purpose. Each class carries the exit code of the CLI."""


class GraphkinError(Exception):
    """Base of all graphkin errors: one sentence that names the value, and the next step."""

    exit_code = 1


class GraphError(GraphkinError, ValueError):
    """A graph, or a batch of graphs, that breaks the rules of :class:`graphkin.Graph`."""

    exit_code = 10


class FormatError(GraphkinError, ValueError):
    """A file that is truncated, foreign, or of another version."""

    exit_code = 11


class NoCodeError(FormatError):
    """A file that holds no code, so that there is nothing in it to read; it is not damaged."""


class ConfigError(GraphkinError, ValueError):
    """An unknown key, or a value that an option does not take."""

    exit_code = 12


class ModelError(GraphkinError, ValueError):
    """Weights that do not fit their configuration, or a model used for what it cannot do."""

    exit_code = 13


class TrainingError(GraphkinError, RuntimeError):
    """Training that cannot go on: NaN losses, or a checkpoint of another run."""

    exit_code = 14


class StorageError(GraphkinError, OSError):
    """Writing failed (full disk, no permission). What was there before is intact."""

    exit_code = 15


class MissingDependencyError(GraphkinError, ImportError):
    """An optional package that is not installed."""

    exit_code = 16


class BuildError(GraphkinError, RuntimeError):
    """Configurations of a package that could not be built; their logs say why."""

    exit_code = 17
