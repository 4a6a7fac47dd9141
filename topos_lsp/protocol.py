"""The protocol where pygls leaves the specification: order of messages, malformed ones, exit status, and what errors give away."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final

from cattrs import transform_error
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.protocol import LanguageServerProtocol

logger = logging.getLogger(__name__)

_NOT_INITIALIZED: Final = -32002
_INVALID_REQUEST: Final = -32600
_INVALID_PARAMS: Final = -32602
_INTERNAL: Final = -32603
_PARSE: Final = -32700
_OF_OPEN: Final = (lsp.TEXT_DOCUMENT_DID_CHANGE, lsp.TEXT_DOCUMENT_DID_CLOSE)
_MOST_FAULTS: Final = 3  # told of one message


@dataclass(frozen=True, slots=True)
class Malformed:
    """A request, or a notification without `id`, whose params are not what its method takes."""

    method: str
    faults: str
    id: Any = None


class Protocol(LanguageServerProtocol):
    """Answers what comes too early or too late as the specification says, and tells no paths of ours in errors."""

    initialized = False
    exit_status: int | None = None

    def handle_message(self, message: Any) -> None:
        """Refuses requests before `initialize` and after `shutdown`, and malformed ones, and drops such notifications."""
        if not hasattr(message, "jsonrpc") and not isinstance(message, Malformed):
            self.refuse(None, _INVALID_REQUEST, "this is no JSON-RPC 2.0 message")
            return
        method = getattr(message, "method", None)
        if method is not None and method != lsp.EXIT:
            if self._shutdown:
                self._refuse(message, _INVALID_REQUEST, "the server was shut down")
                return
            if not self.initialized and method != lsp.INITIALIZE:
                self._refuse(message, _NOT_INITIALIZED, "the server was not initialized")
                return
            if isinstance(message, Malformed):
                self._refuse(message, _INVALID_PARAMS, f"{message.method}: {message.faults}")
                return
            if method == lsp.INITIALIZE:
                if self.initialized:
                    self._refuse(message, _INVALID_REQUEST, "the server was initialized before")
                    return
                self.initialized = True
            if method == lsp.SHUTDOWN:
                for future in list(self._request_futures.values()):  # pygls cancels while each of them leaves the table
                    future.cancel()
            if method in _OF_OPEN and not self._is_open(message.params):
                self._refuse(message, _INVALID_REQUEST, f"{message.params.text_document.uri} is not open")
                return
            if isinstance(message, lsp.ExecuteCommandRequest) and message.params.arguments is None:
                message.params.arguments = []  # none are none too few: pygls would call the command with nothing
        elif method == lsp.EXIT:
            self.exit_status = 0 if self._shutdown else 1
        super().handle_message(message)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Turns a JSON object into a message; one whose parts do not fit its method says what is wrong with it."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            cause = error.__cause__
            faults = "; ".join(transform_error(cause, "")[:_MOST_FAULTS]) if cause is not None else str(error)
            if "method" in data:
                return Malformed(str(data["method"]), faults, data.get("id"))
            told = lsp.ResponseError(code=_INVALID_PARAMS, message=faults)
            return lsp.ResponseErrorMessage(id=data.get("id"), error=told, jsonrpc="2.0")

    def _is_open(self, params: lsp.DidChangeTextDocumentParams | lsp.DidCloseTextDocumentParams) -> bool:
        return params.text_document.uri in self.workspace.text_documents

    def refuse(self, number: Any, code: int, text: str) -> None:
        """Answers with an error; `number` is None where it is not known what is answered, which pygls would leave out."""
        self._send_data({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}})

    def unreadable(self, error: Exception) -> None:
        """Answers a message that is no JSON."""
        self.refuse(None, _PARSE, f"this is no JSON: {error}")

    def _refuse(self, message: Any, code: int, text: str) -> None:
        if getattr(message, "id", None) is not None:
            self.refuse(message.id, code, text)
        else:
            logger.warning("dropped a notification: %s", text)

    def _send_response(self, msg_id: Any, result: Any = None, error: lsp.ResponseError | None = None) -> None:
        """Sends an answer; the traceback that pygls puts into an internal error stays in the log."""
        if error is not None and error.code == _INTERNAL:
            error = lsp.ResponseError(code=_INTERNAL, message="topos failed to answer; its log says why")
        super()._send_response(msg_id, result, error)


def is_refusal(error: object) -> bool:
    """Says whether an error is an answer, such as to a command that does not exist, and no bug of ours."""
    return isinstance(error, JsonRpcException) and not isinstance(error, JsonRpcInternalError)


def _is_fault(record: logging.LogRecord) -> bool:
    """Keeps the tracebacks with which pygls logs refusals and malformed messages out of the log."""
    refused = record.exc_info and is_refusal(record.exc_info[1])
    return not refused and not record.getMessage().startswith("Unable to deserialize message")


logging.getLogger("pygls.protocol.json_rpc").addFilter(_is_fault)


class Refused(JsonRpcException):
    """A request that cannot be done, in words for a person."""

    CODE = -32803  # RequestFailed
    MESSAGE = "request failed"

    def __init__(self, message: str) -> None:
        super().__init__(message=message, code=self.CODE)
