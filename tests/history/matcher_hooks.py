"""Custom matchers for the tests, found by dotted path."""

NOT_CALLABLE = 3


def ignore_case(stored, replayed):
    return str(stored.get("content")).lower() == str(replayed.get("content")).lower()


def returns_one(stored, replayed):
    return 1


def returns_nothing(stored, replayed):
    return None


def raises(stored, replayed):
    raise RuntimeError("matcher exploded")


async def asynchronous(stored, replayed):
    return True


class AsynchronousCallable:
    async def __call__(self, stored, replayed):
        return True


asynchronous_object = AsynchronousCallable()
