"""One spelling of every argument, answer and refusal, for all doors. It knows no HTTP library and no database."""
