# SPDX-License-Identifier: BSD-3-Clause
"""The table of cases. Each module of MODULES has a function `cases` that yields rows. A row has

    name, quick, roles          which run.py uses to choose rows
    run(wire, role)             runs it once with uroce in this role; raises Failure"""

import importlib

MODULES = ["verbs_cases", "address_cases", "access_cases", "rnr_cases", "differs_cases",
           "loss_cases", "mix_cases", "reboot_cases", "cm_cases", "rsocket_cases", "interrupted_cases"]

CASES = [case for name in MODULES for case in importlib.import_module(name).cases()]
