"""What the library refuses or fails at, as exceptions that carry its sentence."""


class Error(Exception):
    """Any failure of Thresher; its text is one sentence that names the argument, its value and what was expected.

    `status` is the number that the C interface gives (thresher/thresher.h).
    """

    status = 0


class InvalidArgumentError(Error, ValueError):
    """An argument's value, shape, type or alignment is wrong. Nothing was written."""

    status = 1


class UnsupportedError(Error, NotImplementedError):
    """Valid, but not available on this device or in this build."""

    status = 2


class OutOfMemoryError(Error, MemoryError):
    """Memory of the host or of the device ran out."""

    status = 3


class FileError(Error, OSError):
    """A file could not be read or written, or is damaged."""

    status = 4


class DeviceError(Error, RuntimeError):
    """The GPU's driver or one of its libraries reported a failure."""

    status = 5


class CompileError(Error, RuntimeError):
    """Device code did not compile."""

    status = 6


class InternalError(Error, RuntimeError):
    """A defect in Thresher itself."""

    status = 7


by_status = {
    kind.status: kind
    for kind in (
        InvalidArgumentError,
        UnsupportedError,
        OutOfMemoryError,
        FileError,
        DeviceError,
        CompileError,
        InternalError,
    )
}
