"""The exceptions dpal raises on purpose. Each message says what, how much, and what to do."""


class DpalError(Exception):
    """Base of every error that dpal raises on purpose."""


class InvalidArgument(DpalError, ValueError):
    """An argument has a value that is not allowed; the message names both."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(f"{name} is {value!r}, but must be {allowed}.")
        self.name = name
        self.value = value


class WrongSettings(InvalidArgument):
    """Settings of a campaign that do not exist or have a wrong value; the message names each. Nothing was changed."""

    def __init__(self, message: str) -> None:
        DpalError.__init__(self, message)
        self.name, self.value = "the settings", None


class NumericalFailure(DpalError, ArithmeticError):
    """A privacy quantity came out as NaN or below zero: no number is better than a wrong one."""


class NoSolution(DpalError):
    """A search has no answer that keeps the promised privacy."""


class BudgetExceeded(DpalError):
    """Something would spend more privacy than was promised. Nothing was charged."""


class NoPlan(DpalError):
    """No plan keeps the promise; the message says why and what would help."""


class MixesRecords(DpalError):
    """A model or an acquisition function lets one record reach another's gradient or score.

    Clipping by record, or the ε of a selection, then means nothing.
    """


class TrainingDiverged(DpalError):
    """The loss is NaN or infinite for every record; the message says how to go on."""


class BadData(DpalError, ValueError):
    """Records that cannot be used as they are; the message names the file or the record's id. Nothing was written."""


class MissingData(DpalError):
    """Files that are not where they were looked for; the message says which files to put where."""


class NotForYou(DpalError):
    """Something that does not exist, or that this person may not see: which of the two is not said."""

    def __init__(self) -> None:
        super().__init__("There is nothing here for you.")


class LabelStudioFailed(DpalError):
    """A Label Studio server that cannot be reached or refuses; the message says what to do. No answer is lost."""


class OracleFailed(DpalError):
    """The oracle, which is not dpal's code, raised an error of its own. Answers that it gave before are kept."""


class MissingPackage(DpalError):
    """An optional package is not installed; the message has the command that installs it."""


class NothingToGiveUp(DpalError):
    """No training phase is open that could be given up; the message says what to do instead. Nothing was changed."""


class CampaignBusy(DpalError):
    """Another process is writing to the campaign. Nothing was changed."""


class DamagedCampaign(DpalError):
    """A campaign's files are not as they were written. Nothing was changed; the message says what to restore."""


class RecordsChanged(DamagedCampaign):
    """Records of a campaign's pool that are missing, unreadable or not as they were; the message names their ids."""


class LabelsRefused(DpalError):
    """Labels that cannot be taken; the message lists every problem. None of them was taken."""


class ProcessLost(DpalError):
    """One of several processes that train together has ended. Nothing is lost; the message says how to go on."""


def is_out_of_memory(error: Exception) -> bool:
    """Python's own error, or torch's: it has a class of its own on a GPU, and only a message on a CPU."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "can't allocate memory" in str(error)
        or "can't start new thread" in str(error)
    )
