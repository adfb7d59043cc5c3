"""A client that shares nothing with the server but gRPC: Python's grpcio, and Google's own types for the details.

    client.py ADDRESS

Says `ok` when every answer was as it should be.
"""

import sys

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status


def order(item):
    """The message Order, field 1."""
    text = item.encode()
    return b"\x0a" + bytes([len(text)]) + text


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
    create = channel.unary_unary(
        "/shop.Orders/Create", request_serializer=None, response_deserializer=None
    )

    def call(item, key, **options):
        metadata = (("idempotency-key", key),) if key else ()
        return create.with_call(order(item), metadata=metadata, timeout=20, **options)

    first, first_call = call("tea", "k")
    again, again_call = call("tea", "k", compression=grpc.Compression.Gzip)
    assert first == again, (first, again)
    assert "idempotency-replayed" not in dict(first_call.initial_metadata())
    replayed = dict(again_call.initial_metadata())
    assert replayed["idempotency-replayed"] == "true", replayed
    assert replayed["x-run-bin"] == dict(first_call.initial_metadata())["x-run-bin"]

    def refused(item, key, code, reason):
        try:
            call(item, key)
        except grpc.RpcError as error:
            assert error.code() == code, (error.code(), error.details())
            told = details(error)
            info = told["ErrorInfo"]
            assert (info.reason, info.domain) == (reason, "idempotency"), info
            return told
        raise AssertionError(f"{item} was not refused")

    told = refused("cake", "k", grpc.StatusCode.FAILED_PRECONDITION, "FINGERPRINT_MISMATCH")
    assert told["ErrorInfo"].metadata["mismatch"] == "body"
    assert "RetryInfo" not in told
    # A run that the server holds back.
    told = refused("slow", "held", grpc.StatusCode.ABORTED, "CONFLICT")
    assert told["RetryInfo"].retry_delay.seconds >= 1
    refused("tea", '"open', grpc.StatusCode.INVALID_ARGUMENT, "INVALID_KEY")

    # An error that is kept, with details of the handler's own.
    codes = []
    for _ in range(2):
        try:
            call("nothing", "n")
        except grpc.RpcError as error:
            codes.append((error.code(), error.details(), dict(error.trailing_metadata())["x-shelf"]))
    assert codes[0] == codes[1] == (grpc.StatusCode.NOT_FOUND, "no such item", "7"), codes
    print("ok")


main()
