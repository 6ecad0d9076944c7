"""Compiled twins of modules. Each is named after its module and says which modules it ``supports``.

A twin is used only where the module has exactly the types that it was written for: see ``nets.frozen``.
"""
