"""A client that shares nothing with the server but gRPC: Python's grpcio, and Google's own types for the details.

    client.py ADDRESS

The server runs a held order under the key `held`, and holds on to it. Says `ok` when every answer was as it should be.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status


def ask(text, code=0):
    """The message Ask: its field 1, and its field 3."""
    said = text.encode()
    return b"\x0a" + bytes([len(said)]) + said + (b"\x18" + bytes([code]) if code else b"")


def details(error):
    """The details of an error, by the name of their type."""
    known = {}
    for detail in rpc_status.from_call(error).details:
        for kind in (error_details_pb2.ErrorInfo, error_details_pb2.RetryInfo):
            if detail.Is(kind.DESCRIPTOR):
                value = kind()
                detail.Unpack(value)
                known[kind.DESCRIPTOR.name] = value
    return known


def main():
    channel = grpc.insecure_channel(sys.argv[1])

    def call(method, message, key, **options):
        page = channel.unary_unary(f"/fixture.Pages/{method}", request_serializer=None, response_deserializer=None)
        metadata = (("idempotency-key", key),) if key else ()
        return page.with_call(message, metadata=metadata, timeout=20, **options)

    first, first_call = call("Fields", ask("tea"), "k")
    again, again_call = call("Fields", ask("tea"), "k")
    assert first == again, (first, again)
    said, replayed = dict(first_call.initial_metadata()), dict(again_call.initial_metadata())
    assert "idempotency-replayed" not in said, said
    assert replayed["idempotency-replayed"] == "true", replayed
    assert replayed["x-run-bin"] == said["x-run-bin"], replayed
    assert "set-cookie" in said and "set-cookie" not in replayed, replayed

    with ThreadPoolExecutor(50) as callers:
        copies = list(callers.map(lambda _: call("Order", ask("tea"), "copies")[0], range(50)))
    assert len(set(copies)) == 1, copies

    def refused(method, message, key, code, reason):
        try:
            call(method, message, key)
        except grpc.RpcError as error:
            assert error.code() == code, (error.code(), error.details())
            told = details(error)
            info = told["ErrorInfo"]
            assert (info.reason, info.domain) == (reason, "idempotency"), info
            return told
        raise AssertionError(f"{method} was not refused")

    told = refused("Fields", ask("cake"), "k", grpc.StatusCode.FAILED_PRECONDITION, "FINGERPRINT_MISMATCH")
    assert told["ErrorInfo"].metadata["mismatch"] == "body"
    assert "RetryInfo" not in told
    told = refused("Held", b"\x0a\x03tea", "held", grpc.StatusCode.ABORTED, "CONFLICT")
    assert told["RetryInfo"].retry_delay.seconds >= 1
    refused("Fields", ask("tea"), '"open', grpc.StatusCode.INVALID_ARGUMENT, "INVALID_KEY")

    # An error that is kept, with details of the handler's own; and one that is not.
    def failed(code, key):
        try:
            call("Fail", ask("no such item", code), key)
        except grpc.RpcError as error:
            return error.code(), error.details(), dict(error.trailing_metadata())["x-run-bin"]

    kept = [failed(5, "kept") for _ in range(2)]
    assert kept[0] == kept[1] and kept[0][:2] == (grpc.StatusCode.NOT_FOUND, "no such item"), kept
    runs = {failed(14, "unavailable") for _ in range(2)}
    assert len(runs) == 2 and {run[0] for run in runs} == {grpc.StatusCode.UNAVAILABLE}, runs
    print("ok")


main()
