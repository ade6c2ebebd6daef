"""Is a person awaited?  Events in, commands out; the clock is an argument.  All of it is pure."""
