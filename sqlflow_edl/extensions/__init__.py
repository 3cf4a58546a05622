"""Extensions of the compiler and its front ends. Nothing outside of this package imports them: tables name them,
`edl.extension_loader` loads them, and the rest works without them.
"""
