"""Only the tests are collected: the other modules need no examples, and some a Unix."""

collect_ignore_glob = ["[!t]*.py"]
