"""The errors that the client of the controllers raises."""

from metadata.errors import ErrorCode, Fault
from metadata.messages.errors import ErrorReply


class ClientError(Exception):
    """A request was refused, or nobody answered; `code` is the error's name."""

    def __init__(
        self, code: str, message: str, status: int = 0, reply: ErrorReply | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.reply = reply or ErrorReply(code, message, whose_fault=Fault.CLIENT.value)
        """The whole error as the controller sent it, for programs."""


def unknown_outcome(request_id: str, why: str, status: int = 0) -> ClientError:
    """Return the error of a change that was sent and may or may not have been made."""
    message = (
        f"outcome unknown: the change may have been made, or not ({why}). To find out, repeat the "
        f"command with --request-id {request_id}: it takes effect at most once"
    )
    code = ErrorCode.REQUEST_TIMED_OUT
    reply = ErrorReply(
        code.value,
        message,
        whose_fault=code.fault.value,
        retriable=True,
        request_id=request_id,
        details={"outcome": "unknown"},
    )
    return ClientError(code.value, message, status, reply)


def no_answer(url: str, why: str) -> ClientError:
    """Return the error of a controller that can't be reached."""
    message = f"{url} does not answer: {why}"
    reply = ErrorReply("NO_ANSWER", message, whose_fault=Fault.CLUSTER.value, retriable=True)
    return ClientError("NO_ANSWER", message, reply=reply)
