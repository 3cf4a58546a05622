"""Extensions of the runtime. Nothing outside of this package imports them: tables name them, `edl.extension_loader`
loads them, and the runtime works without them.
"""
