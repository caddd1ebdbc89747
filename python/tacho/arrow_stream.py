"""Reads Arrow's IPC stream as `tacho query --output-format arrow` writes it, for Pythons without pyarrow and polars.

Format: https://arrow.apache.org/docs/format/Columnar.html; its metadata are FlatBuffers, https://flatbuffers.dev/internals/
"""
import array
import struct
import sys

INT64, DOUBLE, TEXT, NULL = "int64", "double", "text", "null"
KINDS = {1: NULL, 2: INT64, 3: DOUBLE, 5: TEXT}  # by the number of the type in Arrow's Schema.fbs
SCHEMA, BATCH = 1, 3  # kinds of messages


class Table:
    """A table within a FlatBuffer; fields are numbered as in its schema."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.fields = at - struct.unpack_from("<i", data, at)[0]

    def place(self, field):
        """Where a field lies; 0 where it is left out."""
        size = struct.unpack_from("<H", self.data, self.fields)[0]
        inside = 4 + 2 * field < size
        offset = struct.unpack_from("<H", self.data, self.fields + 4 + 2 * field)[0] if inside else 0
        return self.at + offset if offset else 0

    def number(self, field, code):
        place = self.place(field)
        return struct.unpack_from("<" + code, self.data, place)[0] if place else 0

    def follow(self, place):
        return place + struct.unpack_from("<I", self.data, place)[0]

    def table(self, field):
        return Table(self.data, self.follow(self.place(field)))

    def text(self, field):
        at, count = self.list(field)
        return bytes(self.data[at:at + count]).decode()

    def list(self, field):
        """(where the first element lies, how many there are)"""
        place = self.place(field)
        if not place:
            return 0, 0
        at = self.follow(place)
        return at + 4, struct.unpack_from("<I", self.data, at)[0]

    def tables(self, field):
        at, count = self.list(field)
        return [Table(self.data, self.follow(at + 4 * i)) for i in range(count)]

    def pairs(self, field):
        at, count = self.list(field)
        return list(struct.iter_unpack("<qq", self.data[at:at + 16 * count]))


class Column:
    """A column of a whole answer: name, kind, and the batches' (rows, validity or None, values) with values as bytes, of texts
    (ends, bytes)."""

    def __init__(self, name, kind):
        self.name, self.kind, self.parts = name, kind, []

    def rows(self):
        return sum(rows for rows, _, _ in self.parts)

    def texts(self):
        """str, or None where there is no value. Equal texts are one object."""
        known, result = {}, []
        for rows, validity, (ends, data) in self.parts:
            data = bytes(data)
            for row in range(rows):
                piece = data[ends[row]:ends[row + 1]]
                text = known.get(piece)
                if text is None:
                    text = known[piece] = piece.decode()
                result.append(text)
            if validity is not None:
                first = len(result) - rows
                for row in range(rows):
                    if not validity[row >> 3] >> (row & 7) & 1:
                        result[first + row] = None
        return result

    def values(self):
        """The values as a list; None where there is none."""
        if self.kind == NULL:
            return [None] * self.rows()
        if self.kind == TEXT:
            return self.texts()
        result = []
        for rows, validity, data in self.parts:
            numbers = numbers_of("q" if self.kind == INT64 else "d", data)
            result.extend(numbers if validity is None else
                          (number if validity[row >> 3] >> (row & 7) & 1 else None for row, number in enumerate(numbers)))
        return result

    def numpy(self, numpy):
        """(values of numbers, whether each is there or None where all are) as NumPy arrays."""
        kind = "<i8" if self.kind == INT64 else "<f8"
        values = [numpy.frombuffer(data, kind, rows) for rows, _, data in self.parts]
        known = None
        if any(validity is not None for _, validity, _ in self.parts):
            known = [numpy.ones(rows, bool) if validity is None else
                     numpy.unpackbits(numpy.frombuffer(validity, numpy.uint8), count=rows, bitorder="little").astype(bool)
                     for rows, validity, _ in self.parts]
            known = numpy.concatenate(known)
        return (numpy.concatenate(values) if values else numpy.empty(0, kind)), known


def numbers_of(code, data):
    numbers = array.array(code)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def exactly(file, size):
    data = file.read(size)
    if len(data) != size:
        raise EOFError("the stream ends before its end mark")
    return memoryview(data)


def messages(file):
    """(kind, table, body) of each message up to the end mark."""
    while True:
        mark, size = struct.unpack("<Ii", exactly(file, 8))
        if mark != 0xffffffff:
            raise ValueError("no stream of Arrow's")
        if size == 0:
            return
        data = exactly(file, size)
        message = Table(data, struct.unpack_from("<I", data)[0])
        yield message.number(1, "B"), message.table(2), exactly(file, message.number(3, "q"))


def read(file):
    """The columns of the stream in a binary file, a list of Column. EOFError where it is cut off, ValueError where it is none or
    has other types than tacho writes."""
    columns = []
    for kind, table, body in messages(file):
        if kind == SCHEMA:
            for field in table.tables(1):
                number = field.number(2, "B")
                if number not in KINDS:
                    raise ValueError(f"column {field.text(0)!r} has a type that tacho does not write")
                columns.append(Column(field.text(0), KINDS[number]))
        elif kind == BATCH:
            nodes, buffers = iter(table.pairs(1)), iter(table.pairs(2))

            def take(buffers=buffers, body=body):
                at, size = next(buffers)
                return body[at:at + size]

            for column in columns:
                rows, nulls = next(nodes)
                if column.kind == NULL:
                    column.parts.append((rows, None, None))
                    continue
                validity = take()
                validity = validity if nulls else None
                if column.kind == TEXT:
                    ends = numbers_of("i", take())
                    column.parts.append((rows, validity, (ends, take())))
                else:
                    column.parts.append((rows, validity, take()))
        else:
            raise ValueError("a kind of message that tacho does not write")
    return columns
