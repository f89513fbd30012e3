"""Published figures on the reliability of agents, computed anew and printed beside what was published."""
