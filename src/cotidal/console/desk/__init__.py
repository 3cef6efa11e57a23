"""What a page can ask of a live cluster, beyond the picture: the questions, by their names.

    {"do": "ask", "what": "elect", "arguments": {"topic": "orders", "partition": 0}, "ask": 13}

reaches ``QUESTIONS["elect"].answer(desk, command)``, where ``command`` holds the arguments
(``command.text("topic")``) and ``desk`` the cluster; what it returns is the answer. A ClientError
or a Refused becomes the sentence of a refusal. Questions are asked in threads of their own, so they
may take their time and hold nothing up. One that ``changes`` something is refused by a console that
was not started with --allow-changes.

A room of questions is a module here; ``questions.py`` is the table of them all.
"""
