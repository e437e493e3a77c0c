"""The errors of the devnet's scripts."""


class DevnetError(Exception):
    """Something the devnet cannot do, in one line; `detail` may hold more lines, such as the end of a log."""

    misuse = False

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail
        if detail:
            self.add_note(detail)


class MisuseError(DevnetError):
    """What was asked for makes no sense, or not in the devnet's present state."""

    misuse = True
