"""What can go wrong, as exceptions."""


class Error(Exception):
    """All errors of cashrank. The message says what is wrong, where, and what to do."""


class Damaged(Error):
    """A file of a store is not as it was written. The message names the file and says how to mend the store."""


class InUse(Error):
    """The store is open for writing already, here or in another process. There is one writer at a time."""


class NotFound(Error, LookupError):
    """What is needed is not there: a store, a ranking, kept links."""


class InvalidInput(Error, ValueError):
    """What is asked for does not hold together, or is outside its range."""


class Conflict(Error):
    """What is asked for does not agree with what the store holds, such as its settings."""


class OutOfRoom(Error):
    """There would be more pages, or more memory would be needed, than ``limit_pages`` or ``memory`` allow."""


class Unsupported(Error):
    """What this version does not read, or a method cannot hold."""


class Closed(Error, ValueError):
    """The store was closed, or opened by another process that this one is a fork of."""


class DiskError(Error, OSError):
    """A file operation of the system failed; ``errno`` and ``filename`` are those of OSError."""


class InternalError(Error):
    """A fault of cashrank. Please report it."""


for _class in list(vars().values()):
    if isinstance(_class, type):
        _class.__module__ = "cashrank"
del _class
