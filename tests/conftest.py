"""One thread for each test process: they run side by side, and threads that outnumber the cores only wait."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # inherited by the processes that tests start
