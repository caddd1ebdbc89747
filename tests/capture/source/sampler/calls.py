"""Call-heavy Python for stress of the sampler: recursion, generators, coroutines, comprehensions, exceptions, classes,
callbacks from C, code objects that come and go, threads. Ends with 0 and a line; nothing may crash."""
import asyncio
import sys
import threading


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def counted(n):
    for i in range(n):
        yield i


def chained(n):
    yield from counted(n)


async def leaf(n):
    return n


async def tree(n):
    return await leaf(n) + sum([await leaf(i) for i in range(3)])


class Meta(type):
    def __call__(cls, *arguments):
        return super().__call__(*arguments)


class Thing(metaclass=Meta):
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value

    @property
    def twice(self):
        return self.value * 2


def fails(n):
    try:
        if n:
            fails(n - 1)
        raise ValueError(n)
    except ValueError:
        return n


def work(rounds):
    total = 0
    for i in range(rounds):
        total += fib(8)
        total += sum(x for x in chained(10))
        total += asyncio.run(tree(i)) if i % 20 == 0 else 0
        total += sorted([Thing(3), Thing(1), Thing(2)])[0].twice
        total += fails(5)
        total += len([lambda y=y: y for y in range(5)])
        code = compile("def made(): return " + str(i), "<made>", "exec")
        scope = {}
        exec(code, scope)
        total += scope["made"]()
    return total


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    threads = [threading.Thread(target=work, args=(rounds,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    work(rounds)
    for thread in threads:
        thread.join()
    print("ended")
