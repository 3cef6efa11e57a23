"""The page: one web page, and behind it a world that it shows and that it commands.

Page and world talk in JSON objects over one message interface, whatever the world is (a simulated
cluster, a script that is played, the durability lab, a live cluster) and whoever hosts it (the ASGI
server of ``server.py``, or a Web Worker with Pyodide in the reader's own browser):

    page -> session    {"do": "open", "world": "simulator", "seed": 7}    which world
                       {"do": "kill", "node": 2, "ask": 12}               what to do in it
                       {"do": "ask", "what": "elect", "arguments": {...}, "ask": 13}
                                                                          of a live cluster (desk/)
                       {"do": "ready"}                                    the last picture is drawn
                       {"do": "choose", "partition": "orders-7"}          of many, this one whole
    session -> page    {"tell": "opened", "world": ..., "about": {...}}   forget the world before
                       {"tell": "picture", "patch": {...}}                what differs from the last
                       {"tell": "log", "name": "told", "at": 40, "items": [...]}
                       {"tell": "answer", "ask": 12, ...}                 what a question found;
                                                                          at once, or turns later
                       {"tell": "refused", "ask": 12, "sentence": "..."}  why it was not obeyed

A world (``world.py``) obeys commands, lets time pass and gives its *picture* (``picture.py`` says
what is in it) and its *logs*: lists that grow at their end, and become shorter only when the world
goes back in time. A session (``session.py``) tells a page what has changed since it was last ready
(``delta.py``), and nothing before it is: a slow page gets fewer pictures, never a queue of them. Of
many partitions it tells about one whole, and a row for each other (``outline.py``).

All of it is pure but ``server.py`` and ``host.py``, and ``live/`` and ``desk/``, behind which is a
real cluster: no asyncio, no clock, no randomness. The host says how much time has passed.
"""
