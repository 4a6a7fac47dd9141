"""The protocol where pygls leaves the specification: order of messages, exit status, and what errors give away."""

from __future__ import annotations

import logging
from typing import Any, Final

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.protocol import LanguageServerProtocol

logger = logging.getLogger(__name__)

_NOT_INITIALIZED: Final = -32002
_INVALID_REQUEST: Final = -32600
_INTERNAL: Final = -32603


class Protocol(LanguageServerProtocol):
    """Answers what comes too early or too late as the specification says, and tells no paths of ours in errors."""

    initialized = False
    exit_status: int | None = None

    def handle_message(self, message: Any) -> None:
        """Refuses requests before `initialize` and after `shutdown`, and drops such notifications."""
        method = getattr(message, "method", None)
        if method is not None and method != lsp.EXIT:
            if self._shutdown:
                self._refuse(message, _INVALID_REQUEST, "the server was shut down")
                return
            if not self.initialized and method != lsp.INITIALIZE:
                self._refuse(message, _NOT_INITIALIZED, "the server was not initialized")
                return
            if method == lsp.INITIALIZE:
                if self.initialized:
                    self._refuse(message, _INVALID_REQUEST, "the server was initialized before")
                    return
                self.initialized = True
            if method == lsp.SHUTDOWN:
                for future in list(self._request_futures.values()):  # pygls cancels while each of them leaves the table
                    future.cancel()
        elif method == lsp.EXIT:
            self.exit_status = 0 if self._shutdown else 1
        super().handle_message(message)

    def _refuse(self, message: Any, code: int, text: str) -> None:
        if hasattr(message, "id"):
            self._send_response(message.id, error=lsp.ResponseError(code=code, message=text))

    def _send_response(self, msg_id: Any, result: Any = None, error: lsp.ResponseError | None = None) -> None:
        """Sends an answer; the traceback that pygls puts into an internal error stays in the log."""
        if error is not None and error.code == _INTERNAL:
            error = lsp.ResponseError(code=_INTERNAL, message="topos failed to answer; its log says why")
        super()._send_response(msg_id, result, error)


def is_refusal(error: object) -> bool:
    """Says whether an error is an answer, such as to a command that does not exist, and no bug of ours."""
    return isinstance(error, JsonRpcException) and not isinstance(error, JsonRpcInternalError)


def _is_fault(record: logging.LogRecord) -> bool:
    """Keeps the tracebacks with which pygls logs refusals out of the log."""
    return not (record.exc_info and is_refusal(record.exc_info[1]))


logging.getLogger("pygls.protocol.json_rpc").addFilter(_is_fault)


class Refused(JsonRpcException):
    """A request that cannot be done, in words for a person."""

    CODE = -32803  # RequestFailed
    MESSAGE = "request failed"

    def __init__(self, message: str) -> None:
        super().__init__(message=message, code=self.CODE)
