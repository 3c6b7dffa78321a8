"""What becomes of a question before anything is retrieved. Needs a language model; a failure leaves it as it is."""
