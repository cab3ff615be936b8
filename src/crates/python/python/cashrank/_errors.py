"""What can go wrong, as exceptions."""


class Error(Exception):
    """All errors of cashrank. The message says what is wrong, where, and what to do."""


class Damaged(Error):
    """A file of a store is not as it was written. The message names the file and says how to mend the store."""


class InUse(Error):
    """The store is open for writing already, here or in another process. There is one writer at a time."""


class NotFound(Error, LookupError):
    """Something required is missing: a store, a ranking, kept links."""


class InvalidInput(Error, ValueError):
    """An argument is outside its range, or arguments contradict each other."""


class Conflict(Error):
    """The request contradicts what the store holds, such as its settings."""


class OutOfRoom(Error):
    """More pages or more memory would be needed than ``limit_pages`` or ``memory`` allows."""


class Unsupported(Error):
    """The data is of a kind that this version cannot read, or a method cannot hold."""


class Closed(Error, ValueError):
    """The store was closed, or opened before this process was forked."""


class DiskError(Error, OSError):
    """A file operation of the system failed; ``errno`` and ``filename`` are those of OSError."""


class InternalError(Error):
    """A bug in cashrank. Please report it."""


for _class in list(vars().values()):
    if isinstance(_class, type):
        _class.__module__ = "cashrank"
del _class
