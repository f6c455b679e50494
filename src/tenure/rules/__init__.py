"""The law: pure functions over frozen values. No I/O, no clock, no random, no await."""
