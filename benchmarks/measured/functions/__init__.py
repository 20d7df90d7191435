"""The measured functions, rebuilt in JAX: one module for each kind.

Each public function of a module takes what a point's `arguments` say and returns a function with
the shapes of its arguments, as mallocgame.xla.capture takes them.
"""
