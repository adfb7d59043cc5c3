"""moto's DynamoDB, one call at a time.

moto_server serves each request on a thread of its own, and looks up, checks and changes an item without a lock: of two
conditional updates that meet, both may be applied. DynamoDB decides each item's writes one after the other, and so
does this. Arguments are those of moto_server.
"""

import threading

from moto.dynamodb.responses import DynamoHandler
from moto.server import main

turn = threading.Lock()
call_at_once = DynamoHandler.call_action


def call_in_turn(self):
    with turn:
        return call_at_once(self)


DynamoHandler.call_action = call_in_turn

if __name__ == "__main__":
    main()
