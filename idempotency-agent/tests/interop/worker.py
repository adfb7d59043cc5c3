"""Workers of replyonce 0.1.3, told what to do by lines of JSON: one line in, one line out.

Arguments: `postgres` or `redis`, the server's URL, and the table or the prefix.
"""

import asyncio
import json
import sys

import replyonce


async def open_store(kind, url, name):
    if kind == "postgres":
        from psycopg_pool import AsyncConnectionPool
        from replyonce.stores.postgres import PostgresStore

        pool = AsyncConnectionPool(url, min_size=8, max_size=8, open=False)
        await pool.open(wait=True, timeout=30)
        store = PostgresStore(pool, table=name)
        await store.migrate()
        return store
    import redis.asyncio
    from replyonce.stores.redis import RedisStore

    return RedisStore(redis.asyncio.Redis.from_url(url), prefix=name)


def told(result):
    """What the other side is told of a result."""
    entry = result.entry or {}
    return {
        "status": result.status,
        "value": result.value,
        "reason": result.reason,
        "conflicts": len(result.conflicts or []),
        "attemptId": entry.get("attemptId"),
    }


class Worker:
    def __init__(self, ledger):
        self.ledger = ledger
        self.runs = {}

    async def race(self, scope, keys, workers):
        """Each worker asks for every order in an order of its own; says who executed what."""
        executed = []

        async def one(number):
            for place in range(len(keys)):
                order = keys[(place + number) % len(keys)]

                async def refund(_context, order=order):
                    await asyncio.sleep(0.002)
                    executed.append(order)
                    return {"by": "python", "order": order}

                await self.ledger.once(replyonce.Key(scope, "refund", {"order": order}), refund)

        await asyncio.gather(*(one(number) for number in range(workers)))
        return executed

    async def once(self, scope, intent, payload, fails):
        async def effect(_context):
            if fails:
                raise TimeoutError("the answer was lost")
            return {"by": "python", "payload": payload}

        return told(await self.ledger.once(replyonce.Key(scope, intent, payload), effect))

    async def begin(self, scope, run):
        self.runs[run] = handle = await self.ledger.begin(scope, run_id=run)
        return {"canWrite": handle.can_write, "alreadyWrote": handle.already_wrote}

    async def write(self, run, intent, payload):
        async def effect(_context):
            return {"by": "python", "payload": payload}

        return told(await self.runs[run].once(intent, payload, effect, conflict="none"))

    async def heartbeat(self, run):
        return await self.runs[run].heartbeat()

    async def end(self, run):
        await self.runs[run].end()

    async def resolve(self, scope, intent, payload, outcome):
        resolved = await self.ledger.resolve(replyonce.Key(scope, intent, payload), outcome)
        return resolved is not None

    async def history(self, scope):
        return [[row["key"], row["status"]] for row in await self.ledger.history(scope)]


async def main():
    kind, url, name = sys.argv[1:]
    worker = Worker(replyonce.ReplyOnce(await open_store(kind, url, name)))
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        asked = json.loads(line)
        answer = await getattr(worker, asked.pop("do"))(**asked)
        print(json.dumps(answer), flush=True)


asyncio.run(main())
