"""A Python program with known shares of time: 70 % in heavy, 20 % in medium, 10 % in light, each a loop on its own line,
called through a generator, a method and (light) a C function's callback. Prints the lines that the loops are on."""
import sys


def heavy(units):
    total = 0
    for i in range(units * 7000):
        total += i * i % 7  # heavy line
    return total


class Worker:
    def medium(self, units):
        total = 0
        for i in range(units * 2000):
            total += i * i % 7  # medium line
        return total


def light(units):
    total = 0
    for i in range(units * 1000):
        total += i * i % 7  # light line
    return total


def generated(units):
    for _ in range(1):
        yield heavy(units)


def outer(units):
    worker = Worker()
    total = 0
    for _ in range(units):
        for value in generated(10):
            total += value
        total += worker.medium(10)
        total += sorted([10], key=light)[0]
    return total


if __name__ == "__main__":
    outer(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    with open(__file__, encoding="utf-8") as source:
        for number, text in enumerate(source, 1):
            if text.rstrip().endswith(" line"):
                print(text.split("#")[1].split()[0], number)
