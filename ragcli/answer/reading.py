"""Did the model read the whole prompt? A server that cuts one says "200 OK" all the same (spec A9; ollama#3839). Pure.

What its usage says that it read is held against our count. Tokenizers differ: of text in ASCII the least that today's
count is about what cl100k_base does (Qwen 2.5 and SmolLM2: 1.0 and 1.08 times as many on English prose), of other
scripts a vocabulary of 200,000 needs down to a third. So the alarm rings below 0.8 of the tokens of what is ASCII and
0.25 of the others, which no whole prompt comes near. By the model's own tokenizer: below 0.95.
"""

from __future__ import annotations

from collections.abc import Callable

from ragcli.types import Prompt, Usage

ASCII, OTHER, OWN = 0.8, 0.25, 0.95


def alarm(prompt: Prompt, usage: Usage, count: Callable[[str], int], *, is_own: bool) -> str:
    """What to warn of; "" where the server read it all, or does not say how much it read."""
    read = usage.prompt_tokens
    if read is None or read >= _least(prompt, count, is_own=is_own):
        return ""
    return (
        f"the server read {read:,} of the prompt's {prompt.tokens:,} tokens ({prompt.counted_by}): the rest was cut "
        "off, most likely at the beginning, where the instructions stand; give it a larger context (Ollama: num_ctx), "
        "or send less: --max-context-tokens N, chat.context_window"
    )


def _least(prompt: Prompt, count: Callable[[str], int], *, is_own: bool) -> float:
    """The fewest tokens that a whole prompt could have."""
    if is_own:
        return OWN * prompt.tokens
    text = "\n".join(message.content for message in prompt.messages)
    plain = count("".join(character for character in text if character.isascii()))
    share = min(plain / (count(text) or 1), 1.0)
    return prompt.tokens * (ASCII * share + OTHER * (1 - share))
