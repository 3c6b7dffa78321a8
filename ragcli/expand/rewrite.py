"""A question that follows on others, written anew so that it stands alone (spec R27; Conversational query rewriting).

"And in winter?" finds nothing; "How long do batteries last in winter?" does. The rewritten question is what is searched
for; the model that answers gets the history and the question as it was put.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ragcli.errors import RagcliError
from ragcli.expand.replies import first_line
from ragcli.types import Chat, Message

TURNS = 6  # messages of the history that are shown: what a question follows on is near
LONGEST_TURN = 1500  # characters of each that are shown
LONGEST = 500  # characters of a question; more is no question
MOST_TOKENS = 128
INSTRUCTION = """\
You prepare searches. You get a conversation and the question that ends it. Write that question anew so that it can be \
understood without the conversation: put in what it refers to, keep its language and its names as they are. If it \
stands alone already, repeat it. Answer with the question only, on one line. Do not answer it."""


def rewritten(
    question: str, history: Sequence[Message], chat: Chat, show: Callable[[Sequence[Message]], None] = lambda _: None
) -> str:
    """The question that stands alone. `show` sees what is sent, before it is.

    Raises: RagcliError: the model fails, or writes what is no question.
    """
    turns = [message for message in history if message.role in {"user", "assistant"}][-TURNS:]
    talk = "\n".join(f"{message.role}: {_shown(message.content)}" for message in turns)
    asked = f"Conversation:\n{talk}\n\nQuestion: {question}\n\nThe question, to be understood alone:"
    sent = [Message("system", INSTRUCTION), Message("user", asked)]
    show(sent)
    reply = chat.reply(sent, max_tokens=MOST_TOKENS)
    found = first_line(reply)
    if not found or len(found) > max(LONGEST, 2 * len(question)):
        raise RagcliError(f"{chat.name} wrote no question")
    return found


def _shown(text: str) -> str:
    """The turn on one line; of a long one the beginning."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TURN else f"{line[:LONGEST_TURN]}…"
