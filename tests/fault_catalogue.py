"""Everything that a network, or a service in trouble, may do to a request, by what the client should make of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from email.utils import formatdate

from fault_proxy import Act, FaultProxy, Turn, pass_on


# What changes nothing: the answer is there.
def late(turn: Turn) -> None:
    turn.pause(0.05)
    pass_on(turn)


def request_twice(turn: Turn) -> None:
    turn.forward()
    pass_on(turn)


def reply_twice(turn: Turn) -> None:
    head, body = turn.forward()
    turn.answer((head + body) * 2, body)


def garbage_after(turn: Turn) -> None:
    head, body = turn.forward()
    turn.answer(head + body + b"\0garbage" * 100, body)


def in_drops(turn: Turn) -> None:
    head, body = turn.forward()
    for place in range(0, len(head), 7):
        turn.send(head[place : place + 7])
    for place in range(len(body)):
        turn.send(body[place : place + 1])
    turn.answer(b"", body)


def labelled_html(turn: Turn) -> None:
    _, body = turn.forward()
    turn.answer(_head(body, "Content-Type: text/html; charset=utf-16") + body, body)


def many_hints(turn: Turn) -> None:
    turn.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 500)
    pass_on(turn)


def in_chunks(turn: Turn) -> None:
    _, body = turn.forward()
    chunks = b"".join(b"%x;extension=1\r\n%s\r\n" % (1, body[i : i + 1]) for i in range(len(body)))
    turn.answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nTrailer: x\r\n\r\n", body)


def until_closed(turn: Turn) -> None:
    _, body = turn.forward()
    turn.answer(b"HTTP/1.0 200\r\n\r\n" + body, body)


# What may go better the next time.
def reset_before(turn: Turn) -> None:
    turn.reset()


def close_before(_: Turn) -> None:
    return


def reset_after(turn: Turn) -> None:
    turn.forward()
    turn.reset()


def cut(where: Callable[[bytes, bytes], bytes]) -> Act:
    """The service answers, a part of that arrives."""
    return lambda turn: turn.send(where(*turn.forward()))


def says(data: bytes) -> Act:
    """Something else arrives, and the connection ends."""
    return lambda turn: turn.send(data)


def status(number: int, body: bytes = b'{"error": "a fault"}', **headers: str) -> Act:
    """A reply in place of the service's."""
    return lambda turn: turn.reply(number, body, **headers)


def wait(number: int, value: str, seconds: float = 0.0, **headers: str) -> Act:
    """A reply that asks to wait."""
    return lambda turn: turn.busy(number, value, seconds, **headers)


def same_place(turn: Turn) -> None:
    turn.reply(307, Location=turn.arrival.target)


def same_place_later(turn: Turn) -> None:
    turn.busy(308, "0.05", 0.05, Location=turn.arrival.target)


def _head(body: bytes, *lines: str) -> bytes:
    given = (f"Content-Length: {len(body)}", *lines)
    return ("HTTP/1.1 200 OK\r\n" + "".join(f"{line}\r\n" for line in given) + "\r\n").encode()


PAST = formatdate(0, usegmt=True)
FUTURE = "Fri, 31 Dec 9999 23:59:59 GMT"

HARMLESS: dict[str, Act] = {
    "late": late,
    "the request twice": request_twice,
    "the reply twice": reply_twice,
    "garbage after the reply": garbage_after,
    "in drops": in_drops,
    "JSON that says it is HTML": labelled_html,
    "a thousand hints before": many_hints,
    "in chunks": in_chunks,
    "until closed": until_closed,
}

AGAIN: dict[str, Act] = {
    "reset before": reset_before,
    "closed before": close_before,
    "reset after: the answer is lost": reset_after,
    "cut in the status line": cut(lambda head, body: head[:9]),
    "cut in the headers": cut(lambda head, body: head[:-9]),
    "cut after the headers": cut(lambda head, body: head),
    "cut before the last byte": cut(lambda head, body: head + body[:-1]),
    "429": status(429),
    "429 for 0 seconds": wait(429, "0"),
    "429 for a moment": wait(429, "0.05", 0.05),
    "429 until long ago": wait(429, PAST),
    "429 until nonsense": wait(429, "Someday, 99 Foo 20x6"),
    "429 for less than nothing": wait(429, "-3600"),
    "429 for nan": wait(429, "nan"),
    "502": status(502, b"<html>bad gateway</html>", Content_Type="text/html"),
    "503 for a moment": wait(503, "0.05", 0.05),
    "504": status(504, b""),
    "redirect to itself": same_place,
    "redirect to itself in a moment": same_place_later,
    "garbage in chunks": says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
    "chunks without an end": says(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n{"predictions":[1]\r\n'),
    "HTTP/0.9": says(b'{"predictions": [1]}'),
    "no HTTP at all": says(b"\x16\x03\x01\x00\xff" * 50),
    "101": says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n\0\1\2"),
    "status 099": says(b"HTTP/1.1 099 What\r\nContent-Length: 2\r\n\r\n{}"),
    "two lengths": says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
    "a length below zero": says(b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}"),
    "no header": says(b"HTTP/1.1 200 OK\r\nno header\r\n\r\n{}"),
    "a head of a megabyte": says(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n{}"),
}


def page(turn: Turn) -> None:
    turn.forward()
    turn.reply(200, b"<!doctype html><title>Welcome</title>Please log in", Content_Type="text/html")


def shaped(change: Callable[[list[float]], str]) -> Act:
    """A reply in the right place, whose answer, numbers for a label or an explanation, is written differently."""

    def act(turn: Turn) -> None:
        _, body = turn.forward()
        reply = json.loads(body)
        if "predictions" in reply:
            text = f'{{"predictions": [{change([float(reply["predictions"][0])])}]}}'
        else:
            numbers = reply["explanations"][0]["counterfactual"]
            text = f'{{"explanations": [{{"counterfactual": {change(numbers)}}}]}}'
        turn.reply(200, text.encode())

    return act


def first_as(word: str) -> Act:
    """The first number replaced by a word."""
    return shaped(lambda numbers: json.dumps(["MARK", *numbers[1:]]).replace('"MARK"', word))


def hundred_megabytes(turn: Turn) -> None:
    turn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
    for _ in range(100):
        turn.send(b" " * 1_000_000)


def endless_bytes(turn: Turn) -> None:
    turn.send(b"HTTP/1.1 200 OK\r\n\r\n")
    turn.until_given_up(b"[" * 1_000_000)


def endless_chunks(turn: Turn) -> None:
    turn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    turn.until_given_up(b"f4240\r\n" + b" " * 1_000_000 + b"\r\n")


BOMB = gzip.compress(b" " * 20_000_000)

REFUSED: dict[str, Act] = {
    "500": status(500),
    "400": status(400, b'{"error": "no"}'),
    "422": status(422, b"\xff\xfe not text"),
    "500 with a page of a megabyte": status(500, b"<p>" * 400_000, Content_Type="text/html"),
    "500 that asks to wait": wait(500, "0.05", 0.05),
    "a page in place of JSON": page,
    "nothing": status(200, b""),
    "204": says(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "JSON of another shape": status(200, b'{"result": {"predictions": "later"}}'),
    "HTTP/9.9": says(b"HTTP/9.9 200 OK\r\n\r\n{}"),
    "only a number": status(200, b"1"),
    "half a text": status(200, b'{"predictions": ["\\ud800'),
    "a lone surrogate": shaped(lambda numbers: json.dumps(["\ud800"] * (len(numbers) + 1))),
    "nested deep": status(200, b'{"explanations": ' + b"[" * 900 + b"]" * 900 + b', "predictions": [[]]}'),
    "nested without end": status(200, b"[" * 100_000),
    "NaN": first_as("NaN"),
    "Infinity": first_as("-Infinity"),
    "1e999": first_as("1e999"),
    "null inside": first_as("null"),
    "a number of 5000 digits": first_as("9" * 5000),
    "a number of 400 digits": first_as("7" * 400),
    "numbers as texts": shaped(lambda numbers: json.dumps([str(number) for number in numbers])),
    "one number too many": shaped(lambda numbers: json.dumps([*numbers, 0.0])),
    "100 MB": hundred_megabytes,
    "without end": endless_bytes,
    "chunks without end": endless_chunks,
    "20 MB in a bomb": status(200, BOMB, Content_Encoding="gzip"),
    "answers in gzip": lambda turn: turn.reply(200, gzip.compress(turn.forward()[1]), Content_Encoding="gzip"),
}

STOPS: dict[str, Act] = {
    "401": status(401),
    "403": status(403, b""),
    "403 for a moment": wait(403, "0.05", 0.05),
    "404": status(404, b"not here"),
    "status 999": status(999),
    "302": lambda turn: turn.reply(302, Location=turn.arrival.target),
    "redirect without an address": status(308),
    "redirect to nonsense": status(307, Location="http://[::1"),
    "redirect to a file": status(307, Location="file:///etc/passwd"),
    "redirect to https": lambda turn: turn.reply(307, Location=f"https://127.0.0.1:{turn.proxy.port}/x"),
    "429 for years": wait(429, "999999999999999999999"),
    "429 until the year 9999": wait(429, FUTURE),
    "503 for an hour": wait(503, "3600"),
}

SLOW: dict[str, Act] = {
    "silence": lambda turn: turn.hold(),
    "a head in drips": lambda turn: (turn.send(b"HTTP/1.1 200 OK\r\nX: "), turn.until_given_up(b"x", 0.05))[1],
    "a body in drips": lambda turn: (turn.send(_head(b"x" * 900)), turn.until_given_up(b" ", 0.05))[1],
    "hints without end": lambda turn: turn.until_given_up(b"HTTP/1.1 102 Processing\r\n\r\n", 0.001),
}


def elsewhere(other: FaultProxy, scheme_and_host: str = "http://127.0.0.1") -> Act:
    """A redirect to another place, which should never hear of it."""
    return lambda turn: turn.reply(307, Location=f"{scheme_and_host}:{other.port}{turn.arrival.target}")
